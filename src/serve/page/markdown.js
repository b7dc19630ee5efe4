/* markdown: what a model wrote, as elements: CommonMark's blocks and spans with tables, struck-out text and task lists,
 * without raw HTML, reference links and images (an image would send data out: it becomes a link). Formulas stay source.
 * Builds nodes from letters only; all work is proportional to the text's length, nesting is limited. */
const MOST_NESTED = 12;
const MOST_ADDRESS = 2048;
const MOST_COLUMNS = 64;

/* ---- blocks: where each begins and ends ------------------------------------------------------ */

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const short = (regex) => ({ test: (line) => line.length < 10000 && regex.test(line) }); // else its stack overflows
const RULE = short(/^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/);
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( {1,4}|\t)(?=\S)|([ \t])|$)/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const DELIMITERS = short(/^\|?[ \t]*:?-+:?(?:[ \t]*\|[ \t]*:?-+:?)*[ \t]*\|?$/); // trimmed: no two runs of blanks meet
const blank = (line) => line === undefined || line.trim() === '';

function isTable(lines, i) {
  const next = lines[i + 1];
  if (!lines[i].includes('|') || next === undefined || !DELIMITERS.test(next.trim())) return false;
  const columns = cells(next).length;
  return columns <= MOST_COLUMNS && cells(lines[i]).length === columns;
}

/* Whether a line begins a block that may follow a paragraph without a blank line. */
function interrupts(lines, i) {
  const line = lines[i], item = ITEM.exec(line);
  return FENCE.test(line) || RULE.test(line) || QUOTE.test(line) || HEADING.test(line) || isTable(lines, i) ||
    (item && line.length > item[0].length && (item[2].length === 1 || parseInt(item[2], 10) === 1));
}

/* Whether line i may go on with the paragraph that a quote or item ends with in the line before, though no mark of
 * theirs stands before it. */
function goesOn(lines, i) {
  let before = lines[i - 1];
  for (let n = 0; n < MOST_NESTED && !RULE.test(before) && (QUOTE.test(before) || ITEM.test(before)); n++) {
    before = before.replace(QUOTE.test(before) ? QUOTE : ITEM, '');
  }
  if (blank(before) || [HEADING, RULE, FENCE].some((x) => x.test(before)) || before.includes('|')) return false;
  return !ITEM.test(lines[i]) && !interrupts(lines, i);
}

/* The block that begins with line i, which is not blank: its kind, what it holds, and the line after its end. raw: the
 * lines with their tabs, for code. */
function scanBlock(lines, i, raw = lines) {
  const line = lines[i];
  let m, to = i + 1;
  if ((m = FENCE.exec(line))) {
    const close = new RegExp('^ {0,3}' + m[1][0] + '{' + m[1].length + ',}[ \\t]*$');
    while (to < lines.length && !close.test(lines[to])) to++;
    const open = to === lines.length, indent = line.indexOf(m[1]);
    const before = new RegExp(`^ {0,${indent}}`), text = raw.slice(i + 1, to).map((l) => l.replace(before, ''));
    return { kind: 'code', lang: m[2].trim().split(/\s/)[0], lines: text, open, to: open ? to : to + 1 };
  }
  if ((m = HEADING.exec(line))) {
    let text = line.slice(m[0].length).trim(), end = text.length;
    while (text[end - 1] === '#') end--;
    if (!end || text[end - 1] === ' ') text = text.slice(0, end).trim();
    return { kind: 'heading', level: m[1].length, text, to };
  }
  if (RULE.test(line)) return { kind: 'rule', to };
  if (QUOTE.test(line)) {
    while (to < lines.length && !blank(lines[to]) && (QUOTE.test(lines[to]) || goesOn(lines, to))) to++;
    return { kind: 'quote', lines: lines.slice(i, to).map((l) => l.replace(QUOTE, '')), to };
  }
  if (ITEM.test(line)) return scanList(lines, i);
  if (isTable(lines, i)) {
    for (to++; to < lines.length && !blank(lines[to]) && (lines[to].includes('|') || !interrupts(lines, to)); ) to++;
    return { kind: 'table', lines: lines.slice(i, to), to };
  }
  if (line.startsWith('    ')) {
    while (to < lines.length && (blank(lines[to]) || lines[to].startsWith('    '))) to++;
    while (blank(lines[to - 1])) to--;
    const text = raw.slice(i, to).map((l) => l.replace(/^(?:\t| {1,4})/, ''));
    return { kind: 'code', lang: '', lines: text, open: false, to };
  }
  while (to < lines.length && !blank(lines[to])) {
    if (/^ {0,3}(?:={3,}|-{3,})[ \t]*$/.test(lines[to])) {
      const level = lines[to].includes('=') ? 1 : 2;
      return { kind: 'heading', level, text: lines.slice(i, to).join('\n').trim(), to: to + 1 };
    }
    if (interrupts(lines, to)) break;
    to++;
  }
  return { kind: 'paragraph', text: lines.slice(i, to).join('\n'), to };
}

function scanList(lines, i) {
  const first = ITEM.exec(lines[i])[2], kind = first.slice(-1);
  const list = { kind: 'list', ordered: first.length > 1, start: parseInt(first, 10), items: [], loose: false, to: i };
  let item = null, offset = 0, was_blank = false, to = i;
  for (; to < lines.length; to++) {
    const line = lines[to];
    if (blank(line)) {
      was_blank = true;
      if (item) item.push('');
      continue;
    }
    const indent = line.length - line.trimStart().length, m = ITEM.exec(line);
    if (item && indent >= offset) {
      item.push(line.slice(offset));
    } else if (m && m[2].slice(-1) === kind && !RULE.test(line)) {
      if (item && was_blank) list.loose = true;
      offset = m[1].length + m[2].length + (m[3] ? m[3].length : 1);
      item = [line.slice(Math.min(line.length, offset))];
      list.items.push(item);
    } else if (item && !was_blank && goesOn(lines, to)) {
      item.push(line.trimStart());
    } else {
      break;
    }
    was_blank = false;
    list.to = to + 1;
  }
  return list;
}

/* Cells of a row; a | after a backslash or between backticks is text. */
function cells(line) {
  const out = [];
  let cell = '', code = false;
  for (let i = 0; i < line.length; i++) {
    if (line[i] === '\\' && line[i + 1] === '|') cell += line[++i];
    else if (line[i] === '|' && !code) { out.push(cell); cell = ''; }
    else {
      if (line[i] === '`') code = !code;
      cell += line[i];
    }
  }
  out.push(cell);
  if (out.length > 1 && blank(out[0])) out.shift();
  if (out.length > 1 && blank(out[out.length - 1])) out.pop();
  return out.map((c) => c.trim());
}

/* ---- blocks: as elements ---------------------------------------------------------------------- */

/* gaps: of a list; gaps.seen becomes true where a blank line stands between two blocks. */
function renderBlocks(lines, depth, gaps) {
  const out = [];
  let was_blank = false;
  for (let i = 0; i < lines.length; ) {
    if (blank(lines[i])) {
      was_blank = true;
      i++;
      continue;
    }
    if (gaps && was_blank && out.length) gaps.seen = true;
    was_blank = false;
    if (depth >= MOST_NESTED) {
      out.push(el('p', {}, inline(lines.slice(i).join('\n'))));
      return out;
    }
    const block = scanBlock(lines, i);
    out.push(renderBlock(block, depth));
    i = block.to;
  }
  return out;
}

function renderBlock(b, depth) {
  switch (b.kind) {
  case 'code': return codeBlock(b.lines.join('\n'), b.lang, b.open);
  case 'heading': return el('h' + Math.min(6, b.level + 2), { dir: 'auto' }, inline(b.text)); // below those of the page
  case 'rule': return el('hr', {});
  case 'quote': return el('blockquote', { dir: 'auto' }, renderBlocks(b.lines, depth + 1));
  case 'list': return renderList(b, depth);
  case 'table': return renderTable(b.lines);
  default: return el('p', { dir: 'auto' }, inline(b.text));
  }
}

function renderList(b, depth) {
  const gaps = { seen: b.loose };
  const items = b.items.map((lines) => {
    const task = /^\[([ xX])\] /.exec(lines[0]);
    if (task) lines[0] = lines[0].slice(4);
    return el('li', {}, task ? (task[1] === ' ' ? '☐ ' : '☑ ') : null, renderBlocks(lines, depth + 1, gaps));
  });
  for (const li of gaps.seen ? [] : items) { // tight: no paragraphs
    for (const p of [...li.children]) if (p.tagName === 'P') p.replaceWith(...p.childNodes);
  }
  return el(b.ordered ? 'ol' : 'ul', { dir: 'auto', start: b.ordered && b.start !== 1 ? b.start : undefined }, items);
}

function renderTable(lines) {
  const align = cells(lines[1]).map((c) => (c.endsWith(':') ? (c.startsWith(':') ? 'centre' : 'end') : undefined));
  const row = (line, tag) => {
    const given = cells(line);
    return el(
      'tr', {}, given.slice(0, align.length).map((c, i) => el(tag, { className: align[i], dir: 'auto' }, inline(c))));
  };
  return el('div', { className: 'wide', tabIndex: 0, role: 'group' },
    el('table', {}, el('thead', {}, row(lines[0], 'th')), el('tbody', {}, lines.slice(2).map((l) => row(l, 'td')))));
}

/* ---- spans ---------------------------------------------------------------------------------------- */

const SPECIAL = /\\|`+|\*+|_+|~+|!?\[|\]|<|&|\$\$?|https?:\/\/|\n/gi;
const ENTITY = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/iy;
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: '\'', nbsp: '\u00a0' };
const BARE = /https?:\/\/[^\s<>"'`|\\]+/iy;
const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]*)>/iy;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const EMPHASIS = { '*': ['em', 'strong'], _: ['em', 'strong'], '~': ['', 'del'] };

/* An address that may be followed: http, https or mailto, absolute, without a user's name in it; else null. */
function safeAddress(address) {
  if (!/^(?:https?:\/\/|mailto:)/i.test(address) || address.length > MOST_ADDRESS) return null;
  let url;
  try { url = new URL(address); } catch { return null; }
  if (!['http:', 'https:', 'mailto:'].includes(url.protocol) || url.username || url.password) return null;
  return url.href;
}

/* A link whose address is seen; children alone where it may not be followed. */
function link(address, children) {
  const url = safeAddress(address);
  if (!url) return [children, ' (', shown(address), ')'];
  const a = el('a', { href: url, rel: 'noopener noreferrer nofollow', target: '_blank' }, children);
  for (const inner of a.querySelectorAll('a')) inner.replaceWith(...inner.childNodes); // no links within links
  const text = a.textContent, { origin } = new URL(url);
  if (text === url || text + '/' === url || (text === address && text.startsWith(origin))) return [a];
  const most = Math.max(99, origin.length); // the host is seen whole
  const seen = url.length > most + 1 ? url.slice(0, most) + '…' : url;
  a.append(el('span', { className: 'address', title: url }, ' (' + shownText(seen) + ')'));
  return [a];
}

/* Nodes of a paragraph's text. One pass; what is open waits on two stacks, delimiters of emphasis and brackets. */
function inline(text) {
  const parts = []; // { nodes, depth }
  const open = []; // delimiters: { c, n, at: index into parts }
  const brackets = []; // { at, image, n_open: delimiters before it }
  const counts = { '*': 0, _: 0, '~': 0 };
  const put = (nodes, depth) => parts.push({ nodes, depth: depth || 0 });
  const putText = (s) => { if (s) put(shown(s)); };
  const cut = (n) => { while (open.length > n) counts[open.pop().c]--; };
  const take = (at) => {
    const inner = parts.splice(at);
    return { nodes: inner.map((p) => p.nodes).flat(Infinity), depth: inner.reduce((d, p) => Math.max(d, p.depth), 0) };
  };
  const ticks = tickRuns(text), closing = closings(text);
  let from = 0, m;

  const emphasis = (run, at) => {
    const c = run[0], before = at > 0 ? [...text.slice(Math.max(0, at - 2), at)].pop() : ' ';
    const after = at + run.length < text.length ? String.fromCodePoint(text.codePointAt(at + run.length)) : ' ';
    const gap = (x) => /\s/.test(x), mark = (x) => PUNCTUATION.test(x);
    const left = !gap(after) && (!mark(after) || gap(before) || mark(before));
    const right = !gap(before) && (!mark(before) || gap(after) || mark(after));
    const opens = left && (c !== '_' || !right || mark(before)), closes = right && (c !== '_' || !left || mark(after));
    const least = EMPHASIS[c][0] ? 1 : 2;
    let n = run.length;
    while (n >= least && closes && counts[c] > 0) {
      let k = open.length - 1;
      while (open[k].c !== c) k--;
      const o = open[k], use = Math.min(2, n, o.n), tag = EMPHASIS[c][use - 1];
      const inner = take(o.at + 1);
      while (brackets.length && brackets[brackets.length - 1].at > o.at) brackets.pop();
      cut(k + 1);
      if (inner.depth >= MOST_NESTED) {
        put(inner.nodes, inner.depth);
        cut(0);
        break;
      }
      o.n -= use;
      n -= use;
      parts[o.at].nodes = o.n ? [c.repeat(o.n)] : [];
      if (o.n < least) cut(k);
      put([el(tag, {}, inner.nodes)], inner.depth + 1);
    }
    if (!n) return;
    put([c.repeat(n)]);
    if (!opens || n < least) return;
    open.push({ c, n, at: parts.length - 1 });
    counts[c]++;
  };

  /* ] at text[at]: a link where an address follows. Returns where to go on. */
  const closeBracket = (at) => {
    const b = brackets.pop(), to = b && destination(text, at + 1);
    if (!to) {
      put([']']);
      return at + 1;
    }
    const inner = take(b.at + 1);
    parts.pop();
    cut(b.n_open);
    if (b.image) {
      const alt = [t('image', { alt: inner.nodes.map((x) => x.textContent ?? x).join('') })];
      put(brackets.length ? [alt, ' (', shown(to.address), ')'] : link(to.address, alt), 1);
    } else {
      put(link(to.address, inner.nodes), inner.depth + 1);
      brackets.length = 0; // no links within links
    }
    return to.next;
  };

  SPECIAL.lastIndex = 0;
  while ((m = SPECIAL.exec(text))) {
    const s = m[0], at = m.index, c = s[0];
    let next = at + s.length, end;
    if (from < at) putText(text.slice(from, at));
    if (c === '\\') {
      const e = text[next];
      if ((e === '(' || e === '[') && (end = closing(next + 1, e === '(' ? '\\)' : '\\]')) > 0) {
        put([el('code', { className: 'math' }, shown(text.slice(at, end)))]);
        next = end;
      } else if (e === '\n') {
        put([el('br', {})]);
        next++;
      } else if (e !== undefined && e < '\u0080' && PUNCTUATION.test(e)) {
        put([e]);
        next++;
      } else put(['\\']);
    } else if (c === '`') {
      if ((end = ticks(at, s.length)) > 0) {
        let code = text.slice(next, end).replace(/\n/g, ' ');
        if (code.startsWith(' ') && code.endsWith(' ') && code.trim()) code = code.slice(1, -1);
        put([el('code', {}, shown(code))]);
        next = end + s.length;
      } else put([s]);
    } else if (c === '*' || c === '_' || c === '~') {
      emphasis(s, at);
    } else if (c === '$') {
      end = closing(next, s);
      if (end > 0 && !/\s/.test(text[next] + text[end - s.length - 1]) && (s === '$$' || !/\d/.test(text[end] || ''))) {
        put([el('code', { className: 'math' }, shown(text.slice(at, end)))]);
        next = end;
      } else put([s]);
    } else if (s === '[' || s === '![') {
      put([s]);
      brackets.push({ at: parts.length - 1, image: s !== '[', n_open: open.length });
    } else if (c === ']') {
      next = closeBracket(at);
    } else if (c === '&') {
      ENTITY.lastIndex = at;
      const e = ENTITY.exec(text);
      if (e) {
        const code = e[1] ? parseInt(e[1], 10) : e[2] ? parseInt(e[2], 16) : 0;
        const bad = code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || (!e[3] && !code);
        put(shown(e[3] ? ENTITIES[e[3].toLowerCase()] : bad ? '\ufffd' : String.fromCodePoint(code)));
        next = ENTITY.lastIndex;
      } else put([c]);
    } else if (c === '<') {
      ANGLE.lastIndex = at;
      const a = ANGLE.exec(text);
      if (a && safeAddress(a[1])) {
        put(link(a[1], shown(a[1])), 1);
        next = ANGLE.lastIndex;
      } else put([c]);
    } else if (s === '\n') {
      put(text.slice(at - 2, at) === '  ' ? [el('br', {})] : ['\n']);
    } else { // an address by itself
      BARE.lastIndex = at;
      const a = BARE.exec(text);
      let address = a ? a[0] : s;
      if (brackets.length) address = address.split(']')[0];
      let n = address.length;
      const pairs = address.includes('(');
      while (a && '.,;:!?*_~])}'.includes(address[n - 1]) && !(pairs && address[n - 1] === ')')) n--;
      address = address.slice(0, n);
      put(a && safeAddress(address) ? link(address, shown(address)) : shown(address), 1);
      next = at + address.length;
    }
    from = SPECIAL.lastIndex = next;
  }
  putText(text.slice(from));
  return parts.map((p) => p.nodes).flat(Infinity);
}

/* A function (from, close) that gives the index after what opened before `from`, where it closes within 2000
 * characters; 0: it does not. Called in order, so that the text is searched once. */
function closings(text) {
  const next = {};
  return (from, close) => {
    if (!(next[close] >= from)) {
      const at = text.indexOf(close, from);
      next[close] = at < 0 ? Infinity : at;
    }
    return next[close] > from && next[close] <= from + 2000 ? next[close] + close.length : 0;
  };
}

/* A function (at, n) that gives the start of the next run of exactly n backticks after at; 0: none. Called in order. */
function tickRuns(text) {
  let runs = null;
  return (at, n) => {
    if (!runs) {
      runs = new Map();
      for (const m of text.matchAll(/`+/g)) {
        if (!runs.has(m[0].length)) runs.set(m[0].length, { at: [], next: 0 });
        runs.get(m[0].length).at.push(m.index);
      }
    }
    const r = runs.get(n);
    while (r && r.next < r.at.length && r.at[r.next] <= at) r.next++;
    return r && r.next < r.at.length ? r.at[r.next] : 0;
  };
}

/* "(address "title")" at text[at]: the address and where the text goes on; null: none. */
function destination(text, at) {
  if (text[at] !== '(') return null;
  let i = at + 1, depth = 0;
  const most = Math.min(text.length, i + MOST_ADDRESS), angle = text[i] === '<';
  if (angle) i++;
  const start = i;
  for (; i < most; i++) {
    const c = text[i];
    if (angle ? c === '>' : /\s/.test(c)) break;
    if (c === '\n' || c === '<' || (!angle && c === '(' && ++depth > 8)) return null;
    if (!angle && c === ')' && depth-- === 0) break;
  }
  if (i >= most) return null;
  const address = text.slice(start, i);
  if (angle) i++;
  const rest = /^(?:[ \t]+(?:"[^"\n]{0,500}"|'[^'\n]{0,500}'))?[ \t]{0,20}\)/.exec(text.slice(i, i + 600));
  return rest ? { address, next: i + rest[0].length } : null;
}

/* ---- a text that grows ------------------------------------------------------------------------------ */

/* Shows a text in `root` and keeps up with it: blocks that are complete stay, only the last is made anew. */
class MarkdownView {
  constructor(root) {
    this.root = root;
    this.clear();
  }
  clear() {
    this.text = '';
    this.at = 0; // what is before is complete
    this.tail = []; // elements of what begins there: a block, and perhaps one of a line that may yet become part of it
    this.code = -1; // length of the code shown in the first of them while its fence is open; -1: it is something else
    this.root.replaceChildren();
  }
  /* ended: nothing will be added. */
  update(text, ended) {
    if (text.includes('\r')) text = text.replace(/\r\n?/g, '\n');
    if (!text.startsWith(this.text)) this.clear();
    else if (text.length === this.text.length && !ended) return;
    this.text = text;
    const raw = text.slice(this.at).split('\n');
    const lines = raw.map((l) => l.replace(/^\t+/, (tabs) => '    '.repeat(tabs.length)));
    const old = this.tail;
    let offset = this.at, i = 0;
    const advance = (to) => { for (; i < to; i++) offset += raw[i].length + 1; };
    this.tail = [];
    while (i < lines.length) {
      if (blank(lines[i])) {
        advance(i + 1);
        continue;
      }
      const block = scanBlock(lines, i, raw);
      if (old.length === 1 && this.code >= 0 && block.open && !ended) return this.growCode(old, block);
      const element = renderBlock(block, 0);
      for (let e; (e = old.pop()); ) e.remove();
      this.root.append(element);
      // what begins in the last line may become part of the block before
      if (i < lines.length - 1 || !this.tail.length) {
        this.at = offset;
        this.tail = [];
        this.code = block.open && block.to > i + 1 ? block.lines.join('\n').length : -1; // the fence's line is whole
      }
      this.tail.push(element);
      advance(block.to);
    }
  }
  growCode(tail, block) {
    const text = block.lines.join('\n');
    tail[0].source = text;
    for (const node of shown(text.slice(this.code))) tail[0].querySelector('code').append(node);
    this.tail = tail;
    this.code = text.length;
  }
}
