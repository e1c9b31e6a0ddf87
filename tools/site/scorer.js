// Sphinx calls this to rank search results: prose comes before the reference, and a page whose title contains the query
// comes first.
var Scorer = {
  score([page, title, , , score]) {
    const query = new URLSearchParams(location.search).get("q").trim().toLowerCase();
    const isProse = !page.startsWith("reference/");
    return score + 1000 * isProse + 100 * title.toLowerCase().includes(query);
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
