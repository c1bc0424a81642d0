// Where few pages have all words of a search, pages that have most of them: rare words count more, and
// pages that answer a question more than those that tell all of a paper.
document.addEventListener(
  "DOMContentLoaded",
  () => {
    if (typeof Search === "undefined") return;
    const strict = Search._performSearch;
    Search._performSearch = (query, words, excluded, ...more) => {
      const found = strict(query, words, excluded, ...more);
      if (found.length > 4 || words.size < 3) return found;
      const all = Search._index.docnames.length;
      const pages = new Map(found.map((one) => [one[0], null]));
      for (const word of words) {
        const having = Search.performTermsSearch(new Set([word]), excluded);
        for (const one of having) {
          if (!pages.has(one[0])) pages.set(one[0], { one, words: 0, score: 0 });
          const page = pages.get(one[0]);
          if (page === null) continue; // it is found already
          page.words += 1;
          const answers = /^(questions|made\/models)\//.test(one[0]) ? 2 : 1;
          page.score += answers * one[4] * Math.log((1 + all) / having.length);
        }
      }
      const near = [...pages.values()].filter((page) => page && 2 * page.words >= words.size);
      near.sort((a, b) => a.score - b.score); // the last one is shown first
      return [...near.slice(-10).map((page) => page.one), ...found];
    };
  },
  { capture: true }, // before the search begins
);
