// Joins subwords to words, and their scores and weights with them. Nothing here touches
// the page.

const SPACE = "\u2581";
const BYTE = /^<0x([0-9A-F]{2})>$/;
const END = "</s>";

// Returns [{text, space, tokens}]: of each word its text, whether white space is before
// it, and the numbers of its tokens.
export function wordsOf(tokens) {
  const words = [];
  tokens.forEach((token, number) => {
    if (token === END) return;
    const space = token.startsWith(SPACE);
    if (space || !words.length) words.push({ pieces: [], space, tokens: [] });
    const word = words[words.length - 1];
    word.pieces.push(token.split(SPACE).join(" ").slice(space ? 1 : 0));
    word.tokens.push(number);
  });
  return words.map(({ pieces, space, tokens: numbers }) => ({
    text: decode(pieces),
    space,
    tokens: numbers,
  }));
}

// Characters outside the vocabulary are generated as bytes of UTF-8.
function decode(pieces) {
  const bytes = [];
  for (const piece of pieces) {
    const match = BYTE.exec(piece);
    if (match) bytes.push(parseInt(match[1], 16));
    else bytes.push(...new TextEncoder().encode(piece));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

// Returns the words of a sentence as spans [start, end) of it, if they can be matched
// with the words of its tokens: white space divides both.
export function spansOf(text, words) {
  const spans = [...text.matchAll(/\S+/gu)].map((m) => [m.index, m.index + m[0].length]);
  return spans.length === words.length ? spans : [];
}

// The least probable token decides how sure the model was of a word.
export function probabilityOf(word, logs) {
  if (!logs?.length) return 1;
  return Math.exp(Math.min(...word.tokens.map((number) => logs[number] ?? 0)));
}

// Returns for each target word the set of source words that its tokens are aligned with.
export function linksOf(targets, sources, alignment) {
  const wordOf = new Map();
  sources.forEach((word, number) => word.tokens.forEach((t) => wordOf.set(t, number)));
  const linked = new Map();
  for (const [source, target] of alignment ?? []) {
    if (!linked.has(target)) linked.set(target, new Set());
    if (wordOf.has(source)) linked.get(target).add(wordOf.get(source));
  }
  return targets.map(
    (word) => new Set(word.tokens.flatMap((token) => [...(linked.get(token) ?? [])])),
  );
}

// Returns weights[target word][source word]: sums over the tokens of a source word,
// means over those of a target word.
export function weightsOf(targets, sources, attention) {
  return targets.map((target) =>
    sources.map((source) => {
      const sums = target.tokens.map((row) =>
        source.tokens.reduce((sum, column) => sum + (attention[row]?.[column] ?? 0), 0),
      );
      return sums.reduce((sum, value) => sum + value, 0) / sums.length;
    }),
  );
}

export function percent(probability) {
  return `${Math.round(100 * probability)} %`;
}
