/* code: a block of code as it is seen: its language, a button that copies it, letters with plain colours. */

/* open: more of it is to come, so it is not coloured yet. */
function codeBlock(text, lang, open) {
  const name = lang.slice(0, 32);
  const code = el('code', {}, open || text.length > 100000 ? shown(text) : highlight(text, lang.toLowerCase()));
  const press = async () => say(t(await copyText(root.source) ? 'copied' : 'notCopied'));
  const copy = button('copy', press, { className: 'copy' });
  const label = name ? shownText(name) : t('code');
  const head = el('div', { className: 'code-head' }, el('span', {}, label), copy);
  const root = el('div', { className: 'code', source: text }, head,
    el('pre', { tabIndex: 0, role: 'group', 'aria-label': label, dir: 'ltr' }, code));
  return root;
}


const HASH =
  'py python sh bash zsh shell yaml yml toml make makefile ruby rb perl r dockerfile ini conf cmake nix'.split(' ');
const DASH = 'sql lua haskell hs ada vhdl elm'.split(' ');
const MARKUP = 'html xml svg md markdown'.split(' ');
const PLAIN = ['', 'text', 'txt', 'plain', 'plaintext', 'console', 'output', 'diff', 'log'];
const KEYWORDS = new Set(`
  abstract and as assert async await auto bool boolean break case catch char class const constexpr continue
  declare def default defer del delete do done double elif else elsif end enum esac except export extends extern
  false False fi final finally float fn for foreach from func function global go goto if impl implements import
  in inline int interface is lambda let local long loop match mod module mut namespace new nil None nonlocal not
  null nullptr of operator or override package pass private protected pub public raise range readonly ref return
  self short signed sizeof static static_cast struct super switch template then this throw trait true True try
  type typedef typename typeof undefined union unless unsafe unsigned until use using val var virtual void
  volatile when where while with yield SELECT FROM WHERE INSERT INTO UPDATE SET DELETE CREATE TABLE JOIN LEFT
  RIGHT INNER OUTER ON GROUP BY ORDER LIMIT AND OR NOT NULL AS VALUES PRIMARY KEY
`.trim().split(/\s+/));

function highlight(text, lang) {
  if (PLAIN.includes(lang)) return shown(text);
  const comment = HASH.includes(lang) ? /#.*/ : DASH.includes(lang) ? /--.*/ : MARKUP.includes(lang)
    ? /<!--[^]*?(?:-->|$)/ : /\/\/.*|\/\*[^]*?(?:\*\/|$)/;
  const string = /"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\[^])*`?/;
  const token = new RegExp(`(${comment.source})|(${string.source})|(\\b\\d[\\w.]*)|([A-Za-z_]\\w*)`, 'g');
  const out = [];
  let from = 0;
  for (let m; (m = token.exec(text)); ) {
    const kind = m[1] ? 'comment' : m[2] ? 'string' : m[3] ? 'number' : KEYWORDS.has(m[4]) ? 'keyword' : '';
    if (!kind) continue;
    out.push(shown(text.slice(from, m.index)), el('span', { className: 'hl-' + kind }, shown(m[0])));
    from = token.lastIndex;
  }
  out.push(shown(text.slice(from)));
  return out;
}
