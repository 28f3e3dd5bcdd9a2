// Numbers as people read them; a number is never without its unit, and what is not known is a dash.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const NONE = "–";

export const known = (value) => value !== null && value !== undefined;

export const count = (value) => whole.format(value);

export function watts(value) {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (size < 9999.5) return `${whole.format(value)} W`;
  if (size < 999_950) return `${digits(value / 1e3)} kW`;
  return `${(value / 1e6).toFixed(2)} MW`;
}

// A limit does not move: it needs no digit that says nothing.
export const limit = (value) => watts(value).replace(/\.(\d*?)0+ /, (_, kept) => (kept ? `.${kept} ` : " "));

// Two powers of one kind, in the unit of the larger: `9.8 of 12 kW`.
export function outOf(value, most) {
  if (most < 9999.5) return `${whole.format(value)} of ${whole.format(most)} W`;
  const [size, unit] = most < 999_950 ? [1e3, "kW"] : [1e6, "MW"];
  return `${(value / size).toFixed(1)} of ${Number((most / size).toFixed(1))} ${unit}`;
}

const digits = (value) => (Math.abs(value) < 99.95 ? value.toFixed(1) : whole.format(value));

export const percent = (value, after = 0) => (known(value) ? `${value.toFixed(after)} %` : NONE);

export const degrees = (value) => (known(value) ? `${Number(value.toFixed(1))} °C` : NONE);

export function signed(value, after = 1) {
  if (!known(value)) return NONE;
  const text = Math.abs(value).toFixed(after);
  return Number(text) === 0 ? "0" : `${value < 0 ? "−" : "+"}${text}`;
}

export const fixed = (value, after = 1) => (known(value) ? value.toFixed(after).replace("-", "−") : NONE);

export const plain = (value, after = 1) => (known(value) ? String(Number(value.toFixed(after))).replace("-", "−") : NONE);

export function clockTime(seconds, withSeconds = false) {
  const options = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(withSeconds ? { second: "2-digit" } : {}) };
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", options);
}

// As overview/findings.py says it: as long as people remember it.
export function age(seconds) {
  for (const [unit, word] of [[86400, "days"], [3600, "h"], [60, "min"]]) {
    if (seconds >= 2 * unit) return `${Math.round(seconds / unit)} ${word}`;
  }
  return `${Math.max(0, Math.round(seconds))} s`;
}

export const ago = (then, now) => (known(then) ? `${age(now - then)} ago` : "never");

export function cap(inWatts, inPercent, each = "") {
  if (known(inWatts)) return `${watts(inWatts)}${each}`;
  return known(inPercent) ? `${plain(inPercent)} %` : "none";
}
