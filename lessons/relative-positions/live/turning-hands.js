// One query and one key on three dials, each turned by its position, or with its position added.
//   state()  {i, distance, add, queries, keys, products, score, lowest, highest}: queries and keys have a hand (x, y)
//            per dial, products their dot products; score is the products' sum, lowest and highest its range over all i
//   set({i, distance, add})  i from 0 to 60, distance from 0 to 20, add is true or false; i is at least distance
"use strict";
{
  const { kit, mathematics } = d2lLive;
  const { html, svg, decimals } = kit;
  const LAST = 60;
  const OMEGA = Array.from({ length: 3 }, (_, l) => 10000 ** ((-2 * l) / 16)); // the 3 highest frequencies of width 16
  const CONTENT = [1, 0];

  const direction = (angle) => [Math.cos(angle), Math.sin(angle)];

  /** Turn a vector by an angle. */
  const turn = ([x, y], angle) => {
    const [cosine, sine] = direction(angle);
    return [x * cosine - y * sine, x * sine + y * cosine];
  };
  const addDirection = ([x, y], angle) => {
    const [cosine, sine] = direction(angle);
    return [x + cosine, y + sine];
  };

  const compute = (i, distance, add) => {
    const hands = (position) => OMEGA.map((omega) => (add ? addDirection : turn)(CONTENT, position * omega));
    const [queries, keys] = [hands(i), hands(i - distance)];
    const products = queries.map((query, l) => mathematics.dot(query, keys[l]));
    return { queries, keys, products, score: products.reduce((a, b) => a + b) };
  };

  /** Return the angle between two vectors, in degrees. */
  const angleBetween = ([a, b], [c, d]) => kit.degrees(Math.abs(Math.atan2(a * d - b * c, a * c + b * d)));

  /**
   * Draw the hands of one dial. A turned hand goes from the centre to the rim. If positions are added, the content goes
   * from the left of the rim to the centre, a position from there to the rim, and their sum from the left to the rim.
   */
  const drawing = (query, key, add) => {
    const pivot = add ? -CONTENT[0] : 0;
    const [q, k] = [query, key].map(([x, y]) => [pivot + x, -y]); // SVG counts y downward
    const hand = (kind, [x, y], from = pivot) => svg("line", { class: `live-${kind}`, x1: from, x2: x, y2: y });
    return [
      ...(add ? [q, k].map((tip) => hand("guide", tip, 0)) : []),
      hand("key", k),
      hand("query", q),
      hand("content", [pivot + CONTENT[0], 0]),
      svg("circle", { class: "live-pivot", cx: pivot, r: 0.06 }),
      svg("path", { class: "live-key-tip", d: `M${k} m0,-.17 l.17,.17 l-.17,.17 l-.17,-.17 z` }),
      svg("circle", { class: "live-query-tip", cx: q[0], cy: q[1], r: 0.1 }),
    ];
  };

  /** Show one pair of numbers: its dial, the product, and the angle between the hands. */
  const cell = (omega, l, words) => {
    const { node: dial, hands } = kit.dial();
    const [product, angle] = [kit.quietOutput(), html("small")];
    const speed = html("b", {}, `ω${kit.subscript(l)} = ${Number(omega.toPrecision(3))}`);
    const node = html("div", {}, speed, dial, html("span", {}, words.product, " ", product), angle);
    const draw = ({ queries, keys, products, add }) => {
      const [query, key] = [queries[l], keys[l]];
      const apart = angleBetween(query, key);
      const [q, k] = [query, key].map((hand) => hand.map((x) => decimals(x, 2)).join(", "));
      hands.replaceChildren(...drawing(query, key, add));
      product.value = decimals(products[l], 2);
      angle.textContent = words.apart(apart);
      dial.setAttribute("aria-label", words.dial(l, q, k, apart));
    };
    return { node, draw };
  };

  kit.figure("turning-hands", (root, words) => {
    const cells = OMEGA.map((omega, l) => cell(omega, l, words));
    const [query, key, content] = ["query", "key", "content"].map((kind) =>
      html("span", { class: `live-mark-${kind}` }),
    );
    content.textContent = words.content;
    const [scored, together, hint] = [kit.quietOutput(), kit.quietOutput(), html("p", { class: "live-note" })];
    let chosenI = 5; // the reader's choice, restored when the distance allows it

    const state = () => {
      const now = { i: i.value, distance: distance.value, add: add.value };
      const all = Array.from(
        { length: LAST - now.distance + 1 },
        (_, step) => compute(now.distance + step, now.distance, now.add).score,
      );
      const [lowest, highest] = [Math.min(...all), Math.max(...all)];
      return { ...now, ...compute(now.i, now.distance, now.add), lowest, highest };
    };
    const sentence = ({ distance, lowest, highest }) => {
      const [low, high] = [lowest, highest].map((x) => decimals(x, 2));
      const result = highest - lowest < 1e-9 ? words.stays(low) : words.changes(low, high);
      return words.together(distance, LAST, result);
    };
    const draw = () => {
      i.input.min = distance.value;
      i.value = chosenI;
      const now = state();
      for (const each of cells) each.draw(now);
      query.textContent = words.query(now.i);
      key.textContent = words.key(now.i - now.distance);
      hint.textContent = words.hint(now.add);
      scored.value = words.sum(now.add, kit.addition(now.products, 2));
      together.value = sentence(now);
    };
    const update = () => {
      draw();
      announce(words.summary(scored.value, together.value));
    };

    const choose = () => {
      chosenI = i.value;
      update();
    };
    const i = kit.slider(words.position, { min: 0, max: LAST, value: chosenI }, choose);
    const distance = kit.slider(words.distance, { min: 0, max: 20, value: 2 }, update);
    const add = kit.checkbox(words.add, update);
    root.append(
      html("div", { class: "live-controls" }, i.node, distance.node, add.node),
      html("p", { class: "live-legend" }, query, key, content),
      html("div", { class: "live-dials" }, ...cells.map(({ node }) => node)),
      html("p", {}, scored),
      html("p", {}, together),
      hint,
    );
    const announce = kit.announcer(root);
    const set = (control) => (value) => (control.value = value);
    const controls = { i: (position) => (chosenI = position), distance: set(distance), add: set(add) };
    return { controls, draw, state };
  });
}
