/* talk: a conversation as a tree of messages, of which a branch is shown, and the file it is exported to: hone.chat/1,
 * as `hone chat` writes and reads it, with the other branches beside it. Refuses to know the document and the server.
 *
 * talk: { id, title, named (by its user), created, changed, settings, draft, nodes: { id: node },
 *   chosen: { id of a parent: id of its child that is shown } } and where there is any: gone { id of a message that was
 *   deleted: true }, titled, set and drafted: when its title, its settings and its draft were changed
 * node: { id, parent ('' at the root), role, content, time } and where there is any: files [{ name, text }], reasoning,
 *   calls [{ id, name, arguments }], call_id and name (of a tool's result), model, end, error, stats, hash, logprobs,
 *   changed (when, behind its time) */
const SCHEMA = 'hone.chat/1';
const SCHEMA_ALL = 'hone.chats/1';
const ROLES = ['user', 'assistant', 'tool'];

function newTalk(settings) {
  const now = Date.now();
  return {
    id: newId(),
    title: '',
    named: false,
    created: now,
    changed: now,
    settings: {...settings },
    draft: '',
    nodes: {},
    chosen: {}
  };
}

/* Versions of a message, oldest first: all answers to the same parent. */
function versions(talk, parent) {
  return Object.values(talk.nodes)
    .filter((n) => n.parent === parent)
    .sort((a, b) => a.time - b.time || (a.id < b.id ? -1 : 1));
}

/* The branch shown, from the first message to the last. */
function branch(talk) {
  const children = new Map();
  for (const n of Object.values(talk.nodes)) {
    if (!children.has(n.parent)) children.set(n.parent, []);
    children.get(n.parent).push(n);
  }
  const path = [];
  for (let at = ''; children.has(at); ) {
    const all = children.get(at);
    const n = all.find((x) => x.id === talk.chosen[at]) || all.reduce((last, x) => (x.time >= last.time ? x : last));
    path.push(n);
    at = n.id;
    children.delete(n.parent); // a file that someone made cannot lead in a circle
  }
  return path;
}

/* Adds a message below parent ('' or an id) and shows it. Times never stand still, so they keep the order. */
function addNode(talk, parent, node) {
  const last = Object.values(talk.nodes).reduce((most, n) => Math.max(most, n.time), 0);
  const n = { id: newId(), parent, time: Math.max(Date.now(), last + 1), content: '', ...node };
  talk.nodes[n.id] = n;
  talk.chosen[parent] = n.id;
  if (!talk.named && n.role === 'user' && !parent) {
    talk.title = n.content.trim().split('\n')[0].slice(0, 60);
    talk.titled = Date.now();
  }
  return n;
}

/* Notes that a message is another than it was, for mergeTalk. */
function touch(n) {
  n.changed = Math.max(Date.now(), (n.changed || 0) + 1);
}

/* Takes a message and all that follows it out, for good: its id comes back from no other tab. What was taken, for
 * putBack. */
function removeNode(talk, id) {
  const nodes = [], queue = [id], chosen = { ...talk.chosen };
  talk.gone = talk.gone || {};
  for (let at; (at = queue.pop()); ) {
    talk.gone[at] = true;
    nodes.push(talk.nodes[at]);
    for (const n of Object.values(talk.nodes)) if (n.parent === at) queue.push(n.id);
    delete talk.nodes[at];
    delete talk.chosen[at];
  }
  if (talk.chosen[nodes[0].parent] === id) delete talk.chosen[nodes[0].parent];
  return { nodes, chosen };
}

/* Under new ids: the old ones are gone. */
function putBack(talk, taken) {
  const ids = new Map(taken.nodes.map((n) => [n.id, newId()])), now = (id) => ids.get(id) || id;
  for (const n of taken.nodes) {
    Object.assign(n, { id: now(n.id), parent: now(n.parent) });
    talk.nodes[n.id] = n;
  }
  for (const at in taken.chosen) talk.chosen[now(at)] = now(taken.chosen[at]);
}

/* An answer of which nothing has come. */
const isEmpty = (n) => n.role === 'assistant' && !n.content && !n.reasoning && !n.calls;

/* Takes out answers that were still waited for when the page was closed; another tab may be waiting yet, so they are
 * not gone for good. */
function dropEmpty(talk) {
  for (const n of Object.values(talk.nodes)) {
    if (!isEmpty(n) || versions(talk, n.id).length) continue;
    delete talk.nodes[n.id];
    if (talk.chosen[n.parent] === n.id) delete talk.chosen[n.parent];
  }
}

/* Takes over what another tab made of the same talk, so that mine is both. held: messages that somebody is at in this
 * tab; neither they nor what they follow goes. Ids of the messages that look different now: new ones, changed ones, and
 * what stands beside or before one that came or went. */
function mergeTalk(mine, other, held) {
  const looks = new Set(), stay = new Set(), parents = new Set(Object.values(other.nodes).map((n) => n.parent));
  const around = (n) => {
    looks.add(n.id).add(n.parent);
    for (const v of versions(mine, n.parent)) looks.add(v.id);
  };
  for (const h of held) {
    for (const n of branchTo(mine, h.id)) {
      stay.add(n.id);
      mine.chosen[n.parent] = n.id;
    }
  }
  const gone = { ...other.gone, ...mine.gone };
  for (const id of stay) delete gone[id];
  for (const [id, theirs] of Object.entries(other.nodes)) {
    const n = mine.nodes[id];
    if (n && (theirs.changed || 0) > (n.changed || 0) && !held.includes(n)) {
      for (const name in n) delete n[name];
      Object.assign(n, theirs);
      looks.add(id);
    } else if (!n && !gone[id] && (!isEmpty(theirs) || parents.has(id))) { // an empty one has yet to come
      mine.nodes[id] = theirs;
      around(theirs);
    }
  }
  for (const n of Object.values(mine.nodes)) { // also what was put behind a message that the other tab deleted
    if (!mine.nodes[n.id] || !(gone[n.id] || (n.parent && gone[n.parent]))) continue;
    around(n);
    removeNode(mine, n.id);
  }
  mine.gone = { ...gone, ...mine.gone };
  for (const id of stay) delete mine.gone[id];
  for (const at in other.chosen) if (!mine.nodes[mine.chosen[at]]) mine.chosen[at] = other.chosen[at];

  for (const [time, ...names] of [['titled', 'title', 'named'], ['set', 'settings'], ['drafted', 'draft']]) {
    if ((other[time] || 0) <= (mine[time] || 0)) continue;
    for (const name of [time, ...names]) mine[name] = other[name];
  }
  mine.changed = Math.max(mine.changed, other.changed);
  return looks;
}

/* The messages from the first to id. */
function branchTo(talk, id) {
  const path = [];
  for (let n = talk.nodes[id]; n; n = talk.nodes[n.parent]) path.unshift(n);
  return path;
}

/* A user's text with the files before it, each between fences. */
function contentOf(node) {
  const files = (node.files || []).map((f) => {
    const fence = fenceFor(f.text);
    return `${f.name}:\n${fence}\n${f.text}\n${fence}\n\n`;
  });
  return files.join('') + node.content;
}

/* The API's messages of a branch. */
function messagesOf(path, system) {
  const out = system ? [{ role: 'system', content: system }] : [];
  for (const n of path) {
    const m = { role: n.role, content: contentOf(n) };
    if (n.reasoning) m.reasoning_content = n.reasoning;
    if (n.calls && n.calls.length) {
      m.tool_calls =
        n.calls.map((c) => ({ id: c.id, type: 'function', function: { name: c.name, arguments: c.arguments } }));
      if (!m.content) m.content = null;
    }
    if (n.role === 'tool') m.tool_call_id = n.call_id;
    out.push(m);
  }
  return out;
}

/* ---- files -------------------------------------------------------------------------------------- */

/* As names of `hone chat`. */
const PARAMS = {
  max_tokens: 'n-predict',
  temperature: 'temp',
  top_k: 'top-k',
  top_p: 'top-p',
  min_p: 'min-p',
  repeat_penalty: 'repeat-penalty',
  repeat_last_n: 'repeat-last-n',
  presence_penalty: 'presence-penalty',
  frequency_penalty: 'frequency-penalty'
};

function exportTalk(talk) {
  const s = talk.settings, params = {};
  if (s.seed && BigInt(s.seed) < 2n ** 63n) params.seed = '@seed@'; // below: more than a JavaScript number holds
  for (const name in PARAMS) if (s[name] !== undefined) params[PARAMS[name]] = s[name];
  const tree = {
    title: talk.title,
    named: talk.named,
    created: talk.created,
    settings: s,
    nodes: talk.nodes,
    chosen: talk.chosen
  };
  const o = { schema: SCHEMA, params, model: s.model || '', messages: messagesOf(branch(talk), s.system), tree };
  const text = JSON.stringify(o, null, 2) + '\n';
  return params.seed ? text.replace('"@seed@"', () => s.seed) : text; // the first is that of params
}

function exportAll(talks) {
  return '{"schema": "' + SCHEMA_ALL + '", "talks": [\n' + talks.map(exportTalk).join(',') + ']}\n';
}

const isObject = (x) => typeof x === 'object' && x !== null && !Array.isArray(x);
const isText = (x) => typeof x === 'string';
const isName = (x) => isText(x) && /^[0-9A-Za-z]{1,64}$/.test(x); // so no __proto__

const isTold = (x) => Array.isArray(x) && isText(x[0]) && Number.isFinite(x[1]); // a token and its logprob

function need(ok, what) {
  if (!ok) throw new Error(what);
}

/* A node from a file: only what is known, of the right kind. */
function readNode(m, where) {
  need(isObject(m), `${where} is not an object`);
  need(ROLES.includes(m.role), `${where}.role is ${JSON.stringify(m.role)}, expected ${ROLES.join(', ')}`);
  const calls = m.calls || (m.tool_calls || []).map((c) => ({ id: c.id, ...c.function }));
  need(isText(m.content) || (m.content === null && calls.length), `${where}.content is not a string`);
  const n = { role: m.role, content: m.content || '' };
  const reasoning = m.reasoning_content ?? m.reasoning;
  if (reasoning !== undefined && reasoning !== null) {
    need(isText(reasoning) && m.role === 'assistant', `${where}.reasoning_content: expected a string, of an assistant`);
    n.reasoning = reasoning;
  }
  need(Array.isArray(calls) && calls.every((c) => isObject(c) && isText(c.id) && isText(c.name) && isText(c.arguments)),
    `${where}: calls need id, name and arguments`);
  if (calls.length) n.calls = calls.map((c) => ({ id: c.id, name: c.name, arguments: c.arguments }));
  if (m.role === 'tool') {
    n.call_id = m.call_id ?? m.tool_call_id;
    need(isText(n.call_id), `${where}.tool_call_id is not a string`);
    n.name = isText(m.name) ? m.name : '';
  }
  if (m.files !== undefined) {
    need(Array.isArray(m.files) && m.files.every((f) => isObject(f) && isText(f.name) && isText(f.text)),
      `${where}.files`);
    n.files = m.files.map((f) => ({ name: f.name, text: f.text }));
  }
  for (const name of ['model', 'end', 'error', 'hash']) if (isText(m[name])) n[name] = m[name];
  if (Number.isFinite(m.changed)) n.changed = m.changed;
  if (Array.isArray(m.logprobs) && m.logprobs.every((x) => isTold(x) && Array.isArray(x[2]) && x[2].every(isTold)))
    n.logprobs = m.logprobs;
  if (isObject(m.stats)) {
    n.stats = {};
    for (const name in m.stats)
      if (Number.isFinite(m.stats[name]) || (isText(m.stats[name]) && /^seeds?$/.test(name)))
        n.stats[name] = m.stats[name];
  }
  return n;
}

/* The digits of a seed in a file's text: more than a JavaScript number holds. */
function seedDigits(seed, text) {
  if (!Number.isFinite(seed) || Number.isSafeInteger(seed)) return String(seed ?? '');
  const all = [...text.matchAll(/"seed"\s*:\s*(\d{16,20})(?!\d)/g)].map((m) => m[1]);
  return all.find((digits) => Number(digits) === seed) || '';
}

/* A talk from a parsed file of hone.chat/1 and its text; an Error says what is wrong with it. */
function readTalk(o, text) {
  need(isObject(o), 'not an object');
  need(o.schema === SCHEMA, `schema is ${JSON.stringify(o.schema)}, expected ${SCHEMA}`);
  const talk = newTalk({}), tree = isObject(o.tree) ? o.tree : {}, given = isObject(tree.settings) ? tree.settings : {};
  for (const name in PARAMS) {
    const v = (o.params || {})[PARAMS[name]];
    if (Number.isFinite(v) && !(name === 'max_tokens' && v < 0)) talk.settings[name] = v;
  }
  const seed =
    isText(given.seed) ? given.seed : seedDigits((o.params || {}).seed, text);
  if (validSeed(seed) && seed) talk.settings.seed = seed;
  if (isText(o.model) && o.model) talk.settings.model = o.model;
  for (const f of TEXT_SETTINGS) if (isText(given[f])) talk.settings[f] = given[f];
  if (given.logprobs === true) talk.settings.logprobs = true;
  const lora = Object.entries(given.lora || {}).filter(([id, scale]) => /^\d{1,9}$/.test(id) && Number.isFinite(scale));
  if (lora.length) talk.settings.lora = Object.fromEntries(lora);
  if (isObject(tree.nodes)) {
    for (const id in tree.nodes) {
      const m = tree.nodes[id];
      need(
        isName(id) && isObject(m) && (m.parent === '' || (isName(m.parent) && Object.hasOwn(tree.nodes, m.parent))),
        `tree.nodes.${id}`);
      talk.nodes[id] = { ...readNode(m, `tree.nodes.${id}`), id, parent: m.parent, time: Number(m.time) || 0 };
    }
    for (const id in tree.chosen)
      if ((id === '' || isName(id)) && isName(tree.chosen[id])) talk.chosen[id] = tree.chosen[id];
  } else {
    need(Array.isArray(o.messages), 'no array messages');
    let parent = '', messages = o.messages;
    if (messages.length && isObject(messages[0]) && messages[0].role === 'system') {
      need(isText(messages[0].content), 'messages[0].content is not a string');
      talk.settings.system = messages[0].content;
      messages = messages.slice(1);
    }
    messages.forEach((m, i) => {
      parent = addNode(talk, parent, readNode(m, `messages[${i + o.messages.length - messages.length}]`)).id;
    });
  }
  if (isText(tree.title)) talk.title = tree.title.slice(0, 200);
  talk.named = tree.named === true;
  if (Number.isFinite(tree.created)) talk.created = tree.created;
  return talk;
}

/* Talks of a file's text: one, or all that were exported. */
function readFile(text) {
  const o = JSON.parse(text);
  if (isObject(o) && o.schema === SCHEMA_ALL) {
    need(Array.isArray(o.talks), 'no array talks');
    return o.talks.map((talk) => readTalk(talk, text));
  }
  return [readTalk(o, text)];
}
