/* text: how text that nobody has checked becomes nodes of the document: letters, never markup; what is
 * invisible or turns text around is spelt out. And the SHA-256 of a text. */

/* An element with properties and children: strings become text, lists of any depth their members, null is left out.
 * Names with a dash are attributes. */
function el(tag, props, ...children) {
  const e = fill(document.createElement(tag), children);
  for (const name in
    props) { // after the children: with dir=auto set, browsers look at all text for each one that is added
    if (props[name] === undefined) continue;
    if (name.includes('-') || name === 'role') e.setAttribute(name, props[name]);
    else e[name] = props[name];
  }
  return e;
}

/* Puts nodes, one by one as there may be very many, into an emptied element. */
function fill(e, nodes) {
  e.replaceChildren();
  for (const n of nodes.flat(Infinity)) if (n !== null && n !== undefined) e.append(n);
  return e;
}

function button(key, onclick, props) {
  return el('button', { type: 'button', onclick, ...props }, t(key));
}

/* Characters without a shape, or that turn text around: C0 but \t and \n, DEL, C1, soft hyphen, marks and overrides of
 * direction, separators of lines, zero widths, fillers, annotations, tags, supplementary variation selectors; and
 * joiners and variation selectors, which are right in some places only. */
const UNSEEN = new RegExp(
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5' +
    '\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb' +
    '\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]',
  'gu');
const JOINER = /[\u200c\u200d]/;
const VARIATION = /[\ufe00-\ufe0f]/;
const TAG = /[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}\u{e007f}]/u;
const KEYCAP = /[0-9#*]/;

/* Whether the joiner or selector c may follow what stands before it: emoji and many scripts are written so. */
function joins(c, before) {
  if (JOINER.test(c)) return before > '\u00a8' && !JOINER.test(before);
  if (VARIATION.test(c))
    return KEYCAP.test(before) || (before > '\u00a8' && !VARIATION.test(before) && !JOINER.test(before));
  return false;
}

/* Length of the tags from `at` on that end a flag of a region: U+1F3F4, at most six tags, the cancel tag. 0: none. */
function flagTags(text, at) {
  const tags = /^(?:[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]){1,6}\u{e007f}/u.exec(text.slice(at, at + 14));
  return tags && text.slice(at - 2, at) === '\u{1f3f4}' ? tags[0].length : 0;
}

function codeOf(c) {
  return 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
}

/* Nodes that show text, with every unseen character spelt out as its code. */
function shown(text) {
  const out = [];
  let from = 0;
  UNSEEN.lastIndex = 0;
  for (let m; (m = UNSEEN.exec(text)); ) {
    const c = m[0], at = m.index;
    const before = at > 0 ? [...text.slice(Math.max(0, at - 2), at)].pop() : '';
    if (c === '\r' && text[at + 1] === '\n') { // the end of a line, as some write it
      if (at > from) out.push(text.slice(from, at));
      from = at + 1;
      continue;
    }
    const tags = TAG.test(c) ? flagTags(text, at) : 0;
    if (tags) UNSEEN.lastIndex = at + tags;
    if (tags || joins(c, before)) continue;
    if (at > from) out.push(text.slice(from, at));
    const code = codeOf(c);
    out.push(el('span', { className: 'unseen', title: t('unseen', { code }) }, code));
    from = at + c.length;
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

/* The same as plain text, for titles and labels. */
function shownText(text) {
  return shown(text).map((n) => (typeof n === 'string' ? n : '[' + n.textContent + ']')).join('');
}

/* A fence of backticks that no line of text closes. */
function fenceFor(text) {
  const runs = text.match(/`{3,}/g) || [];
  return '`'.repeat(runs.reduce((most, run) => Math.max(most, run.length + 1), 3));
}

/* ---- SHA-256 ------------------------------------------------------------------------------- */

/* First 32 bits of the fractional parts of the square or cube roots (power) of the first n primes: FIPS 180-4. */
function rootsOfPrimes(n, power) {
  const out = [];
  for (let p = 2; out.length < n; p++) {
    let prime = true;
    for (let d = 2; d * d <= p; d++) if (p % d === 0) prime = false;
    if (!prime) continue;
    const root = Math.pow(p, power);
    out.push(Math.floor((root - Math.floor(root)) * 4294967296) | 0);
  }
  return out;
}

const SHA_K = rootsOfPrimes(64, 1 / 3);
const SHA_START = rootsOfPrimes(8, 1 / 2);

/* Pages that do not come from localhost or by TLS have no crypto.subtle. data: Uint8Array; returns 32 bytes. */
function sha256Plain(data) {
  const padded = new Uint8Array((data.length + 72) & ~63);
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(data.length / 536870912));
  view.setUint32(padded.length - 4, data.length << 3);
  const turn = (x, n) => (x >>> n) | (x << (32 - n));
  const state = Int32Array.from(SHA_START), w = new Int32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(block + 4 * i);
    for (let i = 16; i < 64; i++) {
      const s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3);
      const s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25), s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + SHA_K[i] + w[i]) | 0;
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((x, i) => { state[i] += x; });
  }
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((x, i) => out.setInt32(4 * i, x));
  return new Uint8Array(out.buffer);
}

/* Of the text's UTF-8, in hex. */
async function sha256(text) {
  const data = new TextEncoder().encode(text);
  const sum =
    window.crypto && crypto.subtle ? new Uint8Array(await crypto.subtle.digest('SHA-256', data)) : sha256Plain(data);
  return Array.from(sum, (b) => b.toString(16).padStart(2, '0')).join('');
}

/* A random name for what is kept. */
function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, '0')).join('');
}

async function copyText(text) {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch { /* the older way is tried */ }
  const area = el('textarea', { value: text, className: 'unseen-label' });
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}
