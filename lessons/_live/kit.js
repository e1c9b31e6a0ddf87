// Shared by all live figures: elements, controls, number formats, texts in the page's language, and mounting.
"use strict";

globalThis.d2lLive ??= {};
{
  let ids = 0;

  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  /** @type {(tag: string, attributes?: object, ...children: (Node | string)[]) => HTMLElement} */
  const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

  /** @type {(tag: string, attributes?: object, ...children: (Node | string)[]) => SVGElement} */
  const svg = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  /** Create an <output> that does not announce its changes to screen readers. */
  const quietOutput = (attributes) => html("output", { ...attributes, "aria-live": "off" });

  /** @type {(label: string, onClick: () => void) => HTMLElement} */
  const button = (label, onClick) => {
    const node = html("button", { type: "button" }, label);
    node.addEventListener("click", onClick);
    return node;
  };

  /** Create an input and its label, for text fields, sliders, checkboxes and radio buttons. */
  const labelledInput = (label, attributes, onInput) => {
    const id = `live-${++ids}`;
    const input = html("input", { id, ...attributes });
    input.addEventListener("input", onInput);
    return { id, input, label: html("label", { for: id }, label) };
  };

  /**
   * Create a labelled slider that shows its value. Setting `value` does not call onInput.
   * @param {string} label
   * @param {{min: number, max: number, value: number}} range
   * @param {() => void} onInput called when the reader moves it
   * @param {(value: number) => string} [format]
   */
  const slider = (label, { min, max, value }, onInput, format = String) => {
    const control = labelledInput(label, { type: "range", min, max, value }, () => {
      show();
      onInput();
    });
    const { input } = control;
    const output = quietOutput({ for: control.id });
    const show = () => {
      output.value = format(input.valueAsNumber);
      input.setAttribute("aria-valuetext", output.value);
    };
    show();
    return {
      node: html("div", { class: "live-slider" }, control.label, input, output),
      input,
      get value() {
        return input.valueAsNumber;
      },
      set value(number) {
        input.value = number;
        show();
      },
    };
  };

  /** Create a labelled checkbox. */
  const checkbox = (label, onInput) => {
    const { input, label: text } = labelledInput(label, { type: "checkbox" }, onInput);
    return {
      node: html("div", { class: "live-checkbox" }, input, text),
      get value() {
        return input.checked;
      },
      set value(checked) {
        input.checked = checked;
      },
    };
  };

  /**
   * Create radio buttons under a legend. The value is the index of the chosen button.
   * @type {(legend: string, options: string[], value: number, onInput: () => void) => object}
   */
  const choice = (legend, options, value, onInput) => {
    const name = `live-${++ids}`;
    const buttons = options.map((option) => labelledInput(option, { type: "radio", name }, onInput));
    buttons[value].input.checked = true;
    const parts = buttons.map(({ input, label }) => html("span", {}, input, label));
    return {
      node: html("fieldset", { class: "live-choice" }, html("legend", {}, legend), ...parts),
      get value() {
        return buttons.findIndex(({ input }) => input.checked);
      },
      set value(number) {
        buttons[number].input.checked = true;
      },
    };
  };

  /** Add the figure's only live region, which announces the last text once the reader pauses. */
  const announcer = (root) => {
    const region = html("p", { class: "live-unseen", role: "status" });
    let timer;
    root.append(region);
    return (text) => {
      clearTimeout(timer);
      timer = setTimeout(() => (region.textContent = text), 700);
    };
  };

  /** Format a number with a fixed number of decimals, a true minus sign, and no minus before zero. */
  const decimals = (x, digits) => {
    const text = x.toFixed(digits);
    return text.replace("-", Number(text) ? "−" : "");
  };

  /** Format a sum, "0.54 + 0.95 − 0.10 = 1.39", with "≈" if the rounded numbers do not add up. */
  const addition = (numbers, digits) => {
    const sum = (terms) => terms.reduce((a, b) => a + b);
    const [first, ...others] = numbers.map((x) => decimals(x, digits));
    const parts = others.flatMap((text) => (text.startsWith("−") ? ["−", text.slice(1)] : ["+", text]));
    const total = decimals(sum(numbers), digits);
    const addsUp = decimals(sum(numbers.map((x) => Number(x.toFixed(digits)))), digits) === total;
    return [first, ...parts, addsUp ? "=" : "≈", total].join("\u00a0");
  };

  /** Format a rounding error. */
  const formatError = (x) => (x ? x.toExponential(1) : "0");

  /** Format an angle in degrees. */
  const degrees = (radians) => decimals((radians * 180) / Math.PI, 1);

  /** Format 12 as ₁₂. */
  const subscript = (n) => String(n).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

  /** Return the end of a clock hand at an angle. In SVG, y points downward. */
  const tip = (angle, radius = 1) => [radius * Math.sin(angle), -radius * Math.cos(angle)];

  /** Create a clock face of radius 1, and the group to draw its hands in. */
  const dial = () => {
    const ticks = [0, 90, 180, 270].map((turn) =>
      svg("line", { class: "live-tick", y1: -1, y2: -0.9, transform: `rotate(${turn})` }),
    );
    const hands = svg("g");
    const face = svg("circle", { class: "live-face", r: 1 });
    const node = svg("svg", { viewBox: "-1.2 -1.2 2.4 2.4", role: "img" }, face, ...ticks, hands);
    return { node, hands };
  };

  const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  /** Return the step [rows, columns] of an arrow key, or nothing: keys with Alt, Ctrl or Meta belong to the browser. */
  const arrow = ({ key, altKey, ctrlKey, metaKey }) => (altKey || ctrlKey || metaKey ? null : ARROWS[key]);

  /** The reader's preference for less motion. */
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

  /** Choose among texts by language: zh-TW on a Chinese page, English on any other. */
  const selectLanguage = (words) => {
    const language = document.documentElement.lang.toLowerCase().startsWith("zh") ? "zh-TW" : "en";
    return { language, ...words[language] };
  };

  /**
   * Define a kind of figure, and build one in every element whose data-live is this name. The figure's texts are in
   * d2lLive.words[name]; a lesson sets d2lLive.words once, for all of its figures.
   * @param {string} name
   * @param {(root: HTMLElement, words: object) =>
   *   {controls: Object<string, (value: any) => void>, draw: () => void, state: () => object}} build
   */
  const figure = (name, build) => {
    const mount = (root) => {
      const { words } = d2lLive;
      const { title } = words[name];
      fill(root, { role: "group", "aria-label": title, lang: words.language }, []);
      const { controls, draw, state } = build(root, { ...words, ...words[name] });
      const set = (values) => {
        for (const [control, value] of Object.entries(values)) controls[control](value);
        draw();
      };
      root.live = { state, set };
      draw();
    };
    const mountAll = () => {
      const roots = document.querySelectorAll(`[data-live="${name}"]`);
      for (const root of roots) if (!root.live) mount(root);
    };
    // When a deferred script runs, the page is parsed, even if DOMContentLoaded has not fired.
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", mountAll);
    else mountAll();
  };

  d2lLive.kit = {
    html,
    svg,
    quietOutput,
    button,
    labelledInput,
    slider,
    checkbox,
    choice,
    announcer,
    figure,
    decimals,
    addition,
    formatError,
    degrees,
    subscript,
    tip,
    dial,
    arrow,
    reducedMotion,
    selectLanguage,
  };
}
