// How well a page fits what is searched for (Sphinx asks): what is told in prose comes before the entries of the
// reference, and first of all what has the words in its title.
var Scorer = {
  score([page, title, , , score]) {
    const asked = new URLSearchParams(location.search).get("q").trim().toLowerCase();
    const isProse = !page.startsWith("reference/");
    return score + 1000 * isProse + 100 * title.toLowerCase().includes(asked);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
