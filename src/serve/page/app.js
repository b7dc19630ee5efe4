/* app: the page as a whole: which conversation is open, what is asked and how that goes, lists, notices, keys. */
const $ = (id) => document.getElementById(id);
const MOST_FILE = 4 << 20; // bytes of a file that is attached
const SAVE_MS = 3000; // an answer that is coming is kept so often
const SPEAK_MS = 1500; // whole sentences are announced no faster than this

const app = {
  props: null, // of the server; null: not known yet
  models: [],
  adapters: [],
  talks: [], // all of them, the latest changed first
  talk: null,
  running: null, // { talk, node, controller }
  views: new Map(),
  files: [], // to go with the next message
  attached: new Map(), // files of talks that are not open, by id; '' of one that has no messages
  drafting: null, // the talk whose draft has yet to be kept

  /* ---- asking ------------------------------------------------------------------------------ */

  async send() {
    const text = $('input').value, talk = this.talk;
    if (this.running || (!text.trim() && !this.files.length)) return;
    const path = branch(talk), last = path[path.length - 1];
    const node = addNode(talk, last ? last.id : '',
      { role: 'user', content: text, ...(this.files.length ? { files: this.files } : {}) });
    $('input').value = '';
    this.draft(talk, '');
    this.files = [];
    drawFiles();
    resizeInput();
    await this.answer(talk, node.id);
  },

  /* Answers the message `parent` of talk with a new version. fresh: with another seed, also where one is set. */
  async answer(talk, parent, fresh) {
    if (this.running) return;
    const node = addNode(talk, parent, { role: 'assistant', content: '' });
    await this.ask(talk, node, fresh);
  },

  async continue(talk, node) {
    if (this.running) return;
    await this.ask(talk, node, false, true);
  },

  async sendResults(node, results) {
    if (this.running) return;
    const talk = this.talk;
    let parent = node.id;
    node.calls.forEach((c, i) => {
      parent = addNode(talk, parent, { role: 'tool', call_id: c.id, name: c.name, content: results[i] }).id;
    });
    await this.answer(talk, parent);
  },

  async edited(talk, node, text) {
    const copy = { role: node.role, content: text };
    for (const name of ['files', 'reasoning', 'calls', 'call_id', 'name', 'model'])
      if (node[name]) copy[name] = node[name];
    if (node.role === 'assistant') copy.end = 'stop';
    const n = addNode(talk, node.parent, copy);
    if (node.role === 'assistant') n.hash = await sha256(text);
    if (node.role !== 'assistant') return this.answer(talk, n.id);
    this.adopt(talk);
    this.keep(talk);
    this.draw();
    focusMessage(n);
  },

  /* Fills node, asking until the server answers, refuses or the user stops it. */
  async ask(talk, node, fresh, continued) {
    const controller = new AbortController(), was = { ...node }, before = node.content;
    const seed = (!fresh && talk.settings.seed) || randomSeed();
    this.running = { talk, node, controller };
    delete node.end;
    delete node.error;
    delete node.hash;
    touch(node);
    notice('');
    this.adopt(talk);
    this.keep(talk); // the question stays, whatever becomes of the answer
    this.draw();
    scrollDown(true);
    if (document.activeElement === document.body) $('stop').focus(); // the button that was pressed is gone
    const view = () => this.views.get(node.id);
    const frame = inFrames(() => {
      if (!this.running || this.running.node !== node || this.talk !== talk || !view()) return; // it came too late
      view().grow();
      scrollDown();
    });
    const speaker = new Speaker(before.length);
    let saved = performance.now(), failure = null;
    const changed = () => {
      frame();
      speaker.hear(node.content);
      if (performance.now() - saved > SAVE_MS) {
        saved = performance.now();
        touch(node);
        this.keep(talk);
      }
    };
    try {
      const path = branchTo(talk, continued ? node.id : node.parent);
      const body = requestBody(talk.settings, messagesOf(path, talk.settings.system), seed, continued);
      await patiently(() => streamAnswer(node, body, seed, controller.signal, changed), controller.signal);
    } catch (e) {
      failure = e;
    }
    const read = node.progress && node.progress.total;
    delete node.progress;
    if (read && failure && node.stats.prompt === undefined) node.stats.prompt = read;
    if (failure && failure.name === 'AbortError') node.end = 'stopped';
    else if (failure && failure.kind === 'lost') node.end = 'lost';
    else if (failure) Object.assign(node, { end: 'error', error: words(failure) });
    const nothing = isEmpty(node), added = ['content', 'reasoning', 'calls'].some((name) => node[name] !== was[name]);
    if (continued && node.content === before && failure) node.end = was.end || 'lost';
    if (continued) this.joined(node, was, added);
    else if (nothing && failure) removeNode(talk, node.id);
    else node.hash = await sha256(node.content);
    touch(node);
    this.running = null;
    speaker.end(node.content);
    this.keep(talk);
    if (document.activeElement === $('stop')) $('input').focus();
    this.draw();
    if (failure && node.end !== 'stopped') {
      const goes_on = !nothing && node.content && !node.calls && (continued || node.end === 'lost');
      const again = () => (goes_on ? this.continue(talk, node) : this.answer(talk, node.parent, fresh));
      notice(failure.kind === 'lost' ? t('lost') : words(failure), [[goes_on ? 'continue' : 'retry', again]]);
    }
    if (this.props && this.props.is_sleeping) refresh(); // it was loaded for this answer
    drawContext();
    if (!read || !failure || !added) return;
    // the server's figures come last: this answer has none
    const more = (name) => (node[name] || '').slice((was[name] || '').length);
    const n = await countTokens(more('reasoning') + more('content')).catch(() => 0);
    node.stats.tokens = (node.stats.tokens || 0) + n;
    touch(node);
    this.keep(talk);
    if (view()) view().drawFigures();
    drawContext();
  },

  /* What is told of an answer that was gone on with. Its parts have a seed each, and no one seed makes the whole: so it
   * has no hash, unless nothing was added. */
  joined(node, was, added) {
    if (!added) {
      for (const name of ['stats', 'hash']) {
        if (was[name]) node[name] = was[name];
        else delete node[name];
      }
      return;
    }
    const s = was.stats || {};
    node.stats.seeds = `${s.seeds || s.seed || '…'}, ${node.stats.seed}`;
  },

  stop() {
    if (this.running) this.running.controller.abort();
  },

  /* ---- changes ----------------------------------------------------------------------------- */

  /* Lists a talk that is not yet, or was deleted in another tab while somebody wrote in it here. */
  adopt(talk) {
    if (!this.talks.includes(talk)) this.talks.unshift(talk);
  },

  /* Keeps a talk in the browser, and tells other tabs; not one that was deleted. True: it is kept. */
  async keep(talk) {
    if (!this.talks.includes(talk)) return false;
    talk.changed = Date.now();
    this.sort();
    const kept = await this.write(talk);
    if (kept && channel) channel.postMessage(talk.id);
    return kept;
  },

  /* Writes a talk, together with what other tabs wrote of it. */
  async write(talk) {
    let looks = null;
    const kept = await store.put(talk, (stored) => { looks = this.merge(talk, stored); });
    if (looks && looks.size) this.drawMerged(talk, looks);
    return kept;
  },

  /* Takes over what another tab made of talk; what stands in this tab's field stays its draft. */
  merge(talk, theirs) {
    const looks = mergeTalk(talk, theirs, this.held(talk)), text = $('input').value;
    if (this.talk === talk && text && talk.draft !== text) this.draft(talk, text);
    return looks;
  },

  /* What is being written in talk: kept a little after the last key. */
  draft(talk, text) {
    Object.assign(talk, { draft: text, drafted: Date.now() });
    if (!this.talks.includes(talk)) return remember('draft', text || null);
    this.drafting = talk;
    clearTimeout(this.draft_timer);
    this.draft_timer = setTimeout(() => this.keepDraft(), 500);
  },
  /* The draft alone goes to what is stored: a message that is being edited here, and was deleted in another tab, would
   * come back there with the rest. */
  async keepDraft() {
    const talk = this.drafting;
    if (!this.talks.includes(talk)) return;
    const { draft, drafted } = talk;
    await store.put(talk, (stored) => {
      const older = (stored.drafted || 0) <= drafted;
      return older ? Object.assign(stored, { draft, drafted }) : stored;
    });
    if (this.drafting === talk && talk.drafted === drafted) this.drafting = null;
  },

  /* The page ends: a write that is under way is lost with it, and whatever waits behind that one. Local storage takes
   * the draft at once, if it has room. */
  leaveDraft() {
    const talk = this.drafting;
    if (!this.talks.includes(talk)) return;
    const { id, draft, drafted } = talk;
    if (!remember('left', JSON.stringify({ ...leftDrafts(), [id]: { draft, drafted } }))) store.put(talk);
  },
  takeDrafts() {
    const left = leftDrafts();
    remember('left', null);
    for (const talk of this.talks) {
      const { draft, drafted } = left[talk.id] || {};
      if (typeof draft !== 'string' || !(drafted > (talk.drafted || 0))) continue;
      Object.assign(talk, { draft, drafted });
      this.drafting = talk;
      this.keepDraft();
    }
  },

  sort() {
    this.talks.sort((a, b) => b.changed - a.changed);
    drawList();
  },

  /* Messages of a talk that somebody is at in this tab: answered, edited, with pasted results. */
  held(talk) {
    const held = [...this.views.values()].filter((v) => v.talk === talk && v.busy()).map((v) => v.node);
    return this.running && this.running.talk === talk ? [...held, this.running.node] : held;
  },

  /* Another tab has written the talk of this id. */
  async seen(id) {
    const theirs = await store.get(id), mine = this.talks.find((x) => x.id === id);
    if (!theirs) return;
    if (!mine) {
      dropEmpty(theirs);
      this.talks.push(theirs);
    } else {
      this.drawMerged(mine, this.merge(mine, theirs));
    }
    this.sort();
  },

  /* Another tab has deleted it. What somebody was writing here stays in the field, and an edit where it is. */
  gone(id) {
    const talk = this.talks.find((x) => x.id === id), text = $('input').value, files = this.files;
    store.known.delete(id);
    if (!talk) return;
    const at_it = this.held(talk).some((n) => !this.running || n !== this.running.node);
    if (this.running && this.running.talk === talk) this.stop();
    this.talks = this.talks.filter((x) => x !== talk);
    drawList();
    if (this.talk !== talk || at_it) return;
    const focused = document.activeElement;
    this.fresh();
    if (focused && focused !== document.body && focused.isConnected) focused.focus();
    if (text) {
      $('input').value = this.talk.draft = [this.talk.draft, text].filter((x) => x).join('\n');
      remember('draft', this.talk.draft);
    }
    this.files = files;
    drawFiles();
    resizeInput();
    notice(t('deletedElsewhere', { title: shownText(talk.title) }));
  },

  drawMerged(talk, looks) {
    if (this.talk !== talk) return;
    this.draw(looks);
    scrollDown();
    drawContext();
    if (this.props) meetModel(); // it may be another one now
  },

  /* Shows another version of a message; the focus stays on the arrow. */
  show(talk, node, arrow) {
    if (this.running && this.running.talk === talk) return;
    talk.chosen[node.parent] = node.id;
    this.keep(talk);
    this.draw();
    const actions = this.views.get(node.id).actions;
    (actions.querySelector('.' + arrow + ':not(:disabled)') ||
      actions.querySelector('.previous:not(:disabled), .next'))
      .focus();
    drawContext();
  },

  remove(talk, node) {
    if (this.running && this.running.talk === talk) return;
    const taken = removeNode(talk, node.id);
    this.keep(talk);
    this.draw();
    notice(t('deleted'), [['undo', () => {
      putBack(talk, taken);
      this.keep(talk);
      this.draw();
      focusMessage(node);
    }]]);
    $('input').focus();
  },

  open(talk) {
    const id = (x) => (Object.keys(x.nodes).length ? x.id : '');
    this.keepDraft();
    if (this.talk) this.attached.set(id(this.talk), this.files);
    this.files = this.attached.get(id(talk)) || [];
    this.attached.delete(id(talk));
    this.talk = talk;
    this.views.clear();
    $('messages').replaceChildren();
    $('input').value = talk.draft || '';
    remember('open', talk.id);
    notice('');
    drawFiles();
    this.draw();
    resizeInput();
    drawList();
    drawContext();
    scrollDown(true);
    if (this.props) meetModel();
  },

  fresh() {
    let settings = {};
    try { settings = JSON.parse(recall('settings')) || {}; } catch { /* the server's defaults */ }
    const talk = newTalk(settings);
    talk.draft = recall('draft') || '';
    this.open(talk);
    $('input').focus();
  },

  /* The branch that is open. Views of messages that stay are kept, and so the focus. looks: ids of those that look
   * different, by what another tab did: no other is touched, and none that somebody writes in. */
  draw(looks) {
    const path = branch(this.talk), list = $('messages');
    const views = path.map((n) => {
      const view = this.views.get(n.id);
      if (view && view.node === n) {
        if (!looks || (looks.has(n.id) && !view.busy())) view.update();
        return view;
      }
      this.views.set(n.id, new MessageView(this.talk, n));
      return this.views.get(n.id);
    });
    views.forEach((v, i) => { if (list.children[i] !== v.root) list.insertBefore(v.root, list.children[i] || null); });
    while (list.children.length > views.length) list.lastChild.remove();
    const title = shownText(this.talk.title) || t('untitled'), busy = !!this.running;
    $('title').textContent = title;
    document.title = title + ' – hone';
    $('model').textContent = shownText(modelName() || '');
    $('welcome').hidden = path.length > 0;
    $('talk-actions').hidden = !this.talks.includes(this.talk);
    $('stop').hidden = !busy;
    $('send').hidden = busy;
  },
};

/* ---- the server ------------------------------------------------------------------------------- */

/* Runs attempt again while the server is away, busy or wants a key. */
async function patiently(attempt, signal) {
  let was_away = false;
  for (let tries = 0; ; tries++) {
    try {
      const answer = await attempt();
      if (was_away && app.props) refresh(); // it may be another server now
      return answer;
    } catch (e) {
      if (e.kind === 'key') {
        if (!await askKey()) throw e;
      } else if (e.kind === 'wait' || e.kind === 'unreachable') {
        const key = e.kind === 'unreachable' ? 'unreachable' : e.status === 429 ? 'busy' : 'notReady';
        was_away = was_away || key !== 'busy';
        await countDown(key, e.kind === 'wait' ? e.seconds : Math.min(30, 2 ** tries), signal);
      } else {
        throw e;
      }
    }
    if (signal) signal.throwIfAborted();
  }
}

/* Asks anew what the server is, in the background. */
function refresh() {
  app.props.path = ''; // what is known holds until the answer
  meetServer().catch(() => {});
}

/* Waits, telling how long where no other notice stands; thrown out of it by signal. Seconds are not announced. */
function countDown(key, seconds, signal) {
  return new Promise((done, fail) => {
    let left = seconds;
    const [before, after] = t(key, { s: '\n' }).split('\n'), shown_left = el('span', { role: 'timer' });
    const end = () => {
      clearInterval(timer);
      if (shown_left.isConnected) notice('');
      if (signal) signal.removeEventListener('abort', stop);
    };
    const stop = () => {
      end();
      fail(signal.reason);
    };
    const tick = () => {
      if (left <= 0) {
        end();
        return done();
      }
      shown_left.textContent = left--;
      if ($('notice').hidden) notice([before, shown_left, after]);
    };
    const timer = setInterval(tick, 1000);
    tick();
    if (signal) signal.addEventListener('abort', stop, { once: true });
  });
}

/* An error as a sentence. */
function words(e) {
  if (e.code === 'context_length_exceeded' && e.n_prompt)
    return t('tooLong', { n: number(e.n_prompt), of: number(e.n_ctx || contextSize()) });
  if (e.kind === 'refused' || e.kind === 'key') return t('refused', { why: shownText(e.message) });
  return t(e.kind ? 'failed' : 'pageFailed', { why: shownText(e.message) });
}

async function readJson(path) {
  const response = await ask(path);
  try { return await response.json(); } catch (e) { throw new ApiError('failed', e.message); }
}

/* The model of the talk that is open, and where the server tells what holds for it. */
const modelName = () => app.talk.settings.model || (app.models[0] && app.models[0].id);
function propsPath() {
  const name = app.models.length > 1 && app.talk.settings.model;
  return name ? 'props?model=' + encodeURIComponent(name) : 'props';
}

/* Learns what holds for the model of the talk that is open: context, defaults, roof. A server need not tell. */
async function meetModel() {
  const path = propsPath(), model = app.models.length > 1 ? modelName() : app.models[0] && app.models[0].id;
  if (app.props && app.props.path === path) return;
  let props = null;
  try { props = await patiently(() => readJson(path)); } catch { /* it need not tell */ }
  if (propsPath() !== path) return meetModel(); // another talk is open
  app.props = { ...(isObject(props) ? props : {}), path, model };
  for (const view of app.views.values()) view.drawFigures();
  drawContext();
}

/* Learns what the server runs. */
async function meetServer() {
  const models = await patiently(() => readJson('v1/models'));
  app.models = (models.data || []).filter((m) => isObject(m) && isText(m.id));
  await meetModel();
  try {
    const adapters = await readJson('lora-adapters');
    app.adapters = Array.isArray(adapters) ? adapters.filter((a) => isObject(a) && Number.isInteger(a.id)) : [];
  } catch { app.adapters = []; } // a server without adapters
  if (!app.running) app.draw();
  drawContext();
}

function contextSize() {
  const d = (app.props && app.props.default_generation_settings) || {};
  return (app.props && app.props.n_ctx) || d.n_ctx || 0;
}

let draft_tokens = 0, draft_timer = 0, draft_count = 0;

/* The bar: what the last answer left in the context, and what is being written. */
function drawContext() {
  const of = contextSize(), last = branch(app.talk).reverse().find((n) => n.stats && n.stats.prompt !== undefined);
  const n = (last ? last.stats.prompt + (last.stats.tokens || 0) : 0) + draft_tokens;
  $('context').hidden = !of;
  if (!of) return;
  $('used').value = Math.min(1, n / of);
  $('used-text').textContent = t(n >= 0.9 * of ? 'usedWarn' : 'used', { n: number(n), of: number(of) });
  $('context').classList.toggle('warn', n >= 0.9 * of);
}

/* Tokens of a text to the model that is chosen. 0: it is not loaded, and counting is no reason to load it. */
async function countTokens(text) {
  const path = propsPath(), model = modelName();
  const props = await readJson(path);
  if (isObject(props) && props.is_sleeping) return 0;
  return (await (await ask('tokenize', JSON.stringify({ model, content: text }))).json()).tokens.length;
}

/* Counts the tokens of what is being written, a little after the last key. */
function countDraft() {
  const mine = ++draft_count;
  clearTimeout(draft_timer);
  draft_timer = setTimeout(async () => {
    const text = contentOf({ content: $('input').value, files: app.files });
    let n = 0;
    try { n = text ? await countTokens(text) : 0; } catch { /* the bar then shows what is known */ }
    if (mine !== draft_count) return; // another text stands there now
    draft_tokens = n;
    drawContext();
  }, 400);
}

/* ---- showing and telling ---------------------------------------------------------------------- */

/* A line (text, or nodes) above the message field, with buttons [key of its text, what it does]; '' takes it away. */
function notice(text, actions) {
  $('notice').hidden = !text;
  fill($('notice-text'), [text]);
  const act = (f) => () => {
    notice('');
    if (f) f();
  };
  $('notice-actions')
    .replaceChildren(...(text ? [...(actions || []), ['close']].map(([key, f]) => button(key, act(f))) : []));
}

/* To those who listen, and nobody else. */
function say(text) {
  $('spoken').textContent = text;
}

/* Tells an answer while it comes: whole sentences, not tokens. */
class Speaker {
  constructor(from) {
    this.at = from;
    this.told = 0;
  }
  hear(text) {
    if (performance.now() - this.told < SPEAK_MS) return;
    const rest = text.slice(this.at);
    let to = 0;
    for (const m of rest.matchAll(/[.!?。！？]["')\]]*\s|\n/g)) to = m.index + m[0].length;
    if (to) this.tell(rest.slice(0, to));
  }
  end(text) {
    this.tell(text.slice(this.at));
  }
  tell(text) {
    this.at += text.length;
    this.told = performance.now();
    if (text.trim()) say(text.replace(/[*_`#>|~]+/g, ' ').slice(-2000));
  }
}

/* A function that runs f at the next frame, once however often it is called, and more rarely where f takes long. */
function inFrames(f) {
  let asked = false, not_before = 0;
  const run = (now) => {
    if (now < not_before) return requestAnimationFrame(run);
    asked = false;
    const from = performance.now();
    f();
    not_before = from + 4 * (performance.now() - from);
  };
  return () => {
    if (!asked) requestAnimationFrame(run);
    asked = true;
  };
}

/* Keeps the end in sight where it was. */
let at_end = true;
function scrollDown(force) {
  const main = $('main');
  if (force || at_end) main.scrollTop = main.scrollHeight;
}

function focusMessage(node) {
  const view = app.views.get(node.id);
  if (view) view.root.focus();
}

function drawList() {
  const wanted = $('search').value.trim().toLowerCase();
  const found = app.talks.filter((talk) => !wanted || talk.title.toLowerCase().includes(wanted) ||
    Object.values(talk.nodes).some((n) => n.content.toLowerCase().includes(wanted)));
  const item = (talk) => el('li', {},
    el('button', {
      type: 'button',
      talk,
      onclick: () => {
        app.open(talk);
        closeMenu();
        $('input').focus();
      },
      'aria-current': talk === app.talk ? 'true' : undefined,
      dir: 'auto'
    },
      shownText(talk.title) || t('untitled')));
  const focused = $('talks').contains(document.activeElement) && document.activeElement.talk;
  $('talks').replaceChildren(...found.map(item));
  if (focused) {
    const all = [...$('talks').querySelectorAll('button')];
    const again = all.find((b) => b.talk === focused) || all.find((b) => b.talk === app.talk);
    if (again) again.focus();
  }
  $('none').hidden = found.length > 0;
  $('none').textContent = t(wanted ? 'nothingFound' : 'noTalks');
}

function closeMenu() {
  $('side').classList.remove('open');
  $('menu').setAttribute('aria-expanded', 'false');
}

function drawFiles() {
  $('files').replaceChildren(...app.files.map((f) => el('li', {}, shownText(f.name), ' ', el('button', { type: 'button',
    'aria-label': t('detach', { name: shownText(f.name) }), onclick: () => {
      app.files = app.files.filter((x) => x !== f);
      drawFiles();
      countDraft();
      $('input').focus();
    } }, '×'))));
}

function resizeInput() {
  const input = $('input'), lines = input.value.split('\n').length;
  input.rows = Math.max(2, Math.min(12, lines));
  draft_tokens = 0;
  countDraft();
}

/* ---- files ------------------------------------------------------------------------------------ */

async function attach(files) {
  for (const f of files) {
    if (f.size > MOST_FILE) {
      notice(t('tooLarge', { name: shownText(f.name), most: bytes(MOST_FILE) }));
      continue;
    }
    try {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(await f.arrayBuffer());
      if (text.includes('\0')) throw new TypeError('NUL');
      app.files.push({ name: f.name, text });
    } catch {
      notice(t('notText', { name: shownText(f.name) }));
    }
  }
  drawFiles();
  countDraft();
}

function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  const a = el('a', { href: url, download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

async function importFile(file) {
  try {
    const talks = readFile(await file.text());
    let n = 0;
    for (const talk of talks) {
      app.adopt(talk);
      n += await app.keep(talk);
    }
    if (talks.length) app.open(talks[0]);
    notice(t('imported', { n }) + (n < talks.length ? '. ' + t('storeFull') : ''));
  } catch (e) {
    notice(t('badImport', { name: shownText(file.name), why: e.message }));
  }
}

const fileName = (title) =>
  (title.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '').slice(0, 40) || 'conversation') + '.json';

/* ---- keys and buttons --------------------------------------------------------------------------- */

function listen() {
  const on = (id, what, f) => $(id).addEventListener(what, f);
  on('form', 'submit', (event) => {
    event.preventDefault();
    app.send();
  });
  on('input', 'keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      app.send();
    } else if (event.key === 'ArrowUp' && !$('input').value && !app.running) {
      const mine = branch(app.talk).reverse().find((n) => n.role === 'user');
      if (!mine) return;
      event.preventDefault();
      app.views.get(mine.id).edit();
    }
  });
  on('input', 'input', () => {
    app.draft(app.talk, $('input').value);
    resizeInput();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.isComposing || document.querySelector('dialog[open]')) return;
    if ($('side').classList.contains('open')) closeMenu();
    else app.stop();
  });
  on('stop', 'click', () => {
    app.stop();
    $('input').focus();
  });
  on('new', 'click', () => {
    closeMenu();
    app.fresh();
  });
  on('menu', 'click', () => {
    const open = $('side').classList.toggle('open');
    $('menu').setAttribute('aria-expanded', String(open));
    if (open) $('new').focus();
  });
  on('search', 'input', drawList);
  on('open-settings', 'click', () => openSettings(app.talk, () => {
    app.talk.set = Date.now();
    app.keep(app.talk);
    for (const view of app.views.values()) view.forget(); // the language may be another
    app.draw();
    drawContext();
    meetModel();
  }));
  on('rename', 'click', async () => {
    const talk = app.talk, title = await askFor(t('rename'), t('renameTo'), talk.title);
    if (!title) return;
    Object.assign(talk, { title: title.slice(0, 200), named: true, titled: Date.now() });
    app.keep(talk);
    app.draw();
  });
  on('delete-talk', 'click', async () => {
    const talk = app.talk;
    if (app.running && app.running.talk === talk) app.stop();
    app.talks = app.talks.filter((x) => x !== talk);
    app.fresh(); // at once: who is at another conversation when it is gone from the database stays there
    await store.remove(talk.id);
    if (channel) channel.postMessage({ deleted: talk.id });
    notice(t('deletedTalk', { title: shownText(talk.title) }), [['undo', () => {
      app.adopt(talk);
      app.keep(talk);
      app.open(talk);
    }]]);
  });
  on('export', 'click', () => download(fileName(app.talk.title), exportTalk(app.talk)));
  on('export-all', 'click', () => download('conversations.json', exportAll(app.talks)));
  const pick = (id, take) => {
    on(id, 'click', () => $(id + '-file').click());
    on(id + '-file', 'change', async () => {
      const files = [...$(id + '-file').files];
      $(id + '-file').value = '';
      await take(files);
    });
  };
  pick('import', (files) => importFile(files[0]));
  pick('attach', attach);
  on('main', 'scroll', () => {
    const main = $('main');
    at_end = main.scrollHeight - main.scrollTop - main.clientHeight < 80;
  });
  window.addEventListener('pagehide', () => {
    if (app.running && app.talks.includes(app.running.talk)) store.put(app.running.talk);
    app.leaveDraft();
  });
  document.addEventListener('dragover', (event) => event.preventDefault());
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    attach([...event.dataTransfer.files]);
  });
}

/* Drafts of pages that ended before they were written, by the talk's id. */
function leftDrafts() {
  try {
    const left = JSON.parse(recall('left'));
    return isObject(left) ? left : {};
  } catch { return {}; }
}

/* Other tabs of this page; null where the browser has no such thing. */
const channel = window.BroadcastChannel ? new BroadcastChannel('hone') : null;

/* What another tab says: the id of a talk that it has written, or { deleted: id }. */
function told(data) {
  if (isObject(data)) app.gone(data.deleted);
  else app.seen(data);
}

async function begin() {
  applyLook();
  listen();
  // what is said while the list is read would be lost: it may be of what the list does not hold yet
  const missed = [];
  if (channel) channel.onmessage = ({ data }) => missed.push(data);
  await store.open();
  store.onFull = () => notice(t('storeFull'));
  store.onGone = (id) => app.gone(id);
  app.talks = (await store.all()).sort((a, b) => b.changed - a.changed);
  app.takeDrafts();
  for (const talk of app.talks) dropEmpty(talk);
  const last = app.talks.find((x) => x.id === recall('open'));
  try {
    if (last) app.open(last);
    else app.fresh();
  } catch { app.fresh(); } // one that cannot be shown
  if (store.failed) notice(t('storeFailed', { why: store.failed }));
  if (channel) channel.onmessage = ({ data }) => told(data);
  missed.forEach(told);
  $('input').focus();
  try {
    await meetServer();
  } catch (e) {
    notice(words(e), [['retry', meetServer]]);
  }
}

begin();
