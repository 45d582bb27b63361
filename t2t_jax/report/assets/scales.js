// Axes: numbers to pixels, round ticks, and numbers as text.

/** A linear or logarithmic scale from [low, high] to [start, end] in pixels. */
function makeScale(low, high, start, end, isLog) {
  const change = isLog ? Math.log10 : (value) => value;
  const undo = isLog ? (value) => 10 ** value : (value) => value;
  const [first, last] = [change(low), change(high)];
  const span = last - first || 1;
  return {
    low, high,
    at: (value) => start + ((change(value) - first) / span) * (end - start),
    invert: (pixel) => undo(first + ((pixel - start) / (end - start)) * span),
    ticks: (count) => (isLog ? logTicks(low, high, count) : ticks(low, high, count)),
  };
}

/** Round numbers in [low, high], about `count` of them. */
function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(span / count));
  const unit = [1, 2, 5, 10].find((factor) => span / (factor * power) <= count) * power;
  const found = [];
  for (let n = Math.ceil(low / unit - 1e-9); n * unit <= high + unit * 1e-9; n += 1) {
    found.push(Number((n * unit).toPrecision(12)));
  }
  return found;
}

/** Powers of ten in [low, high], and 2 and 5 times these where there are few. */
function logTicks(low, high, count) {
  const found = [];
  for (const factors of [[1], [1, 3], [1, 2, 5]]) {
    found.length = 0;
    for (let n = Math.floor(Math.log10(low)); n <= Math.log10(high); n += 1) {
      for (const factor of factors) {
        const value = Number((factor * 10 ** n).toPrecision(6));
        if (value >= low && value <= high) found.push(value);
      }
    }
    if (found.length >= Math.min(3, count)) break;
  }
  if (found.length < 2) return ticks(low, high, count);
  const every = Math.ceil(found.length / (count + 2));
  return found.filter((_, n) => n % every === 0);
}

/** A number for an axis: `1.5k`, `20M`, `0.004`, `2e-5`. */
function short(value) {
  const size = Math.abs(value);
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= unit) return `${trim(value / (letter === "k" ? 1e3 : unit), 4)}${letter}`;
  }
  if (size && size < 1e-3) return value.toExponential(1).replace(".0e", "e");
  return trim(value, 4);
}

/** A number to read: four or five digits, with separators of thousands. */
function exact(value) {
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  if (size && size < 1e-3) return value.toExponential(2);
  return trim(value, 4);
}

function trim(value, digits) {
  return String(Number(value.toPrecision(digits)));
}

/** The index of the number in a sorted list that is nearest to `value`. */
function nearest(sorted, value) {
  let [low, high] = [0, sorted.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle;
    else high = middle;
  }
  return value - sorted[low] <= sorted[high] - value ? low : high;
}

/** Interpolates between the knots of two sorted lists. */
function interpolate(xs, ys, value) {
  if (!xs.length) return value;
  let high = xs.findIndex((x) => x >= value);
  if (high < 0) high = xs.length - 1;
  const low = Math.max(0, high - 1);
  const span = xs[high] - xs[low];
  const share = span ? Math.min(1, (value - xs[low]) / span) : 0;
  return ys[low] + share * (ys[high] - ys[low]);
}
