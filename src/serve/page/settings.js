/* settings: what can be set for a conversation, the dialog that sets it, and two dialogs that ask for one thing. A
 * setting that is not given is left to the server, whose defaults are shown. */

/* Numbers, with the limits of the API. */
const SAMPLING = [
  { name: 'temperature', min: 0, max: 5 },
  { name: 'top_k', min: 0, max: 2147483647, whole: true },
  { name: 'top_p', min: 0, max: 1 },
  { name: 'min_p', min: 0, max: 1 },
  { name: 'repeat_penalty', min: 0.01, max: 10 },
  { name: 'repeat_last_n', min: -1, max: 1048576, whole: true },
  { name: 'presence_penalty', min: -2, max: 2 },
  { name: 'frequency_penalty', min: -2, max: 2 },
  { name: 'max_tokens', min: 0, max: 2147483647, whole: true, hint: 'maxHint' },
];
const TEXT_SETTINGS = ['system', 'stop', 'schema', 'tools', 'reasoning_effort', 'model'];
const EFFORTS = ['', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

function validSeed(text) {
  return text === '' || (/^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n);
}

/* What the server says it takes where nothing is given. */
function serverDefault(name) {
  const d = (app.props && app.props.default_generation_settings) || {}, p = d.params || d;
  return Number.isFinite(p[name]) && name !== 'max_tokens' ? p[name] : undefined;
}

/* A labelled field. hint: text below it. */
function field(label, input, hint) {
  input.id = input.id || 'f' + newId();
  const help = hint ? el('small', { id: input.id + '-hint' }, hint) : null;
  if (help) input.setAttribute('aria-describedby', help.id);
  return el('div', { className: 'field' }, el('label', { htmlFor: input.id }, label), input, help);
}

function select(options, value) {
  const s = el('select', {}, options.map(([v, text]) => el('option', { value: v }, text)));
  s.value = value;
  return s;
}

/* The settings of `talk`; done() after they were taken over. */
function openSettings(talk, done) {
  const s = talk.settings, dialog = document.getElementById('settings'), inputs = {};
  const area = (name, rows, hint) => {
    inputs[name] = el('textarea', { rows, value: s[name] || '', dir: 'auto', spellcheck: name === 'system' });
    return field(t(name === 'stop' ? 'stops' : name), inputs[name], hint);
  };

  const models = app.models.map((m) => [m.id, shownText(m.id)]);
  if (s.model && !app.models.some((m) => m.id === s.model)) models.push([s.model, shownText(s.model)]);
  inputs.model = select([['', '–'], ...models], s.model || '');
  const effort = { '': t('effortDefault'), none: t('effortNone') };
  inputs.reasoning_effort = select(EFFORTS.map((e) => [e, effort[e] || e]),
    s.reasoning_effort || '');
  const unknown = Object.keys(s.lora || {}).filter((id) => !app.adapters.some((a) => a.id === Number(id)));
  const lora = [...app.adapters, ...unknown.map((id) => ({ id, name: id }))].map((a) => {
    const given = (s.lora || {})[a.id];
    const input = el('input', { type: 'text', inputMode: 'decimal', value: given === undefined ? '' : String(given) });
    return { id: a.id, name: t('adapterScale', { name: shownText(String(a.name)) }), input, default: a.scale };
  });

  const numbers = SAMPLING.map((f) => {
    inputs[f.name] =
      el('input', { type: 'text', inputMode: 'decimal', value: s[f.name] === undefined ? '' : String(s[f.name]) });
    const usual = serverDefault(f.name), hint = [];
    if (usual !== undefined) hint.push(t('defaultIs', { value: number(usual, 4) }));
    if (f.hint) hint.push(t(f.hint));
    else if (f.max < 1e9) hint.push(t('limits', { min: number(f.min, 2), max: number(f.max) }));
    return field(t(f.name), inputs[f.name], hint.join('; '));
  });
  inputs.seed = el('input', { type: 'text', inputMode: 'numeric', value: s.seed || '' });
  inputs.logprobs = el('input', { type: 'checkbox', checked: !!s.logprobs, id: 'f-logprobs' });

  const lang = select([['en', 'English'], ['de', 'Deutsch']], LANGUAGES[language]);
  const theme =
    select([['', t('themeAuto')], ['light', t('themeLight')], ['dark', t('themeDark')]], recall('theme') || '');
  const space = el('p', { className: 'dim' }), error = el('p', { className: 'error', role: 'alert' });
  store.space().then((e) => {
    if (e) space.textContent = t('storage', { used: bytes(e.used), quota: bytes(e.quota) });
  });

  /* The settings as given; an Error says what is wrong with one. */
  const read = () => {
    const to = {};
    for (const name of TEXT_SETTINGS) if (inputs[name].value.trim()) to[name] = inputs[name].value;
    const numberOf = (name, text, f) => {
      if (f.whole && !/^-?\d+$/.test(text)) throw new Error(t('notWhole', { name, value: text }));
      const value = Number(text.replace(',', '.'));
      if (Number.isFinite(value) && value >= f.min && value <= f.max) return value;
      throw new Error(t('badNumber', { name, value: text, min: f.min, max: f.max }));
    };
    for (const f of SAMPLING) {
      const text = inputs[f.name].value.trim();
      if (text) to[f.name] = numberOf(t(f.name), text, f);
    }
    for (const a of lora) {
      const text = a.input.value.trim();
      if (text) (to.lora = to.lora || {})[a.id] = numberOf(a.name, text, { min: -100, max: 100 });
    }
    const seed = inputs.seed.value.trim();
    if (!validSeed(seed)) throw new Error(t('badSeed'));
    if (seed) to.seed = seed;
    if (inputs.logprobs.checked) to.logprobs = true;
    for (const name of ['schema', 'tools']) {
      if (!to[name]) continue;
      let value;
      try {
        value = JSON.parse(to[name]);
      } catch (e) { throw new Error(t('badJson', { name: t(name), why: e.message })); }
      if (name === 'tools' && !Array.isArray(value)) throw new Error(t('notArray', { name: t(name) }));
      if (name === 'schema' && !isObject(value)) throw new Error(t('notObject', { name: t(name) }));
    }
    return to;
  };

  const submit = (event) => {
    event.preventDefault();
    try {
      talk.settings = read();
    } catch (e) {
      error.textContent = e.message;
      return;
    }
    remember('lang', lang.value);
    remember('theme', theme.value || null);
    remember('settings', JSON.stringify({ ...talk.settings, seed: undefined }));
    applyLook();
    dialog.close();
    done();
  };
  dialog.replaceChildren(el('form', { onsubmit: submit, noValidate: true },
    el('h2', { id: 'settings-title' }, t('settings')), field(t('modelName'), inputs.model),
    lora.map((a) => field(a.name, a.input, a.default !== undefined && t('defaultIs', { value: a.default }))),
    area('system', 4),
    field(t('effort'), inputs.reasoning_effort),
    el('fieldset', {}, el('legend', {}, t('sampling')),
      el('div', { className: 'grid' }, numbers, field(t('seed'), inputs.seed, t('seedHint')))),
    area('stop', 2), area('schema', 4), area('tools', 4, t('toolsHint')),
    el('p', { className: 'check' }, inputs.logprobs, el('label', { htmlFor: 'f-logprobs' }, t('logprobs'))),
    el('div', { className: 'grid' }, field(t('language'), lang), field(t('theme'), theme)), space, error,
    el('div', { className: 'row' }, el('button', { type: 'submit', className: 'main' }, t('save')),
      button('cancel', () => dialog.close()))));
  dialog.showModal();
}

/* Language and colours as chosen, or as the browser prefers. */
function applyLook() {
  chooseLanguage(recall('lang') || (navigator.language || 'en').slice(0, 2));
  const theme = recall('theme');
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

/* Asks for a line of text; null: nothing was given. */
function askFor(title, label, value, type) {
  const dialog = document.getElementById('ask');
  const input = el('input', { type: type || 'text', value, autocomplete: 'off', dir: 'auto' });
  return new Promise((done) => {
    let given = null;
    const submit = (event) => {
      event.preventDefault();
      given = input.value.trim() || null;
      dialog.close();
    };
    dialog.replaceChildren(el('form', { onsubmit: submit }, el('h2', { id: 'ask-title' }, title), field(label, input),
      el('div', { className: 'row' }, el('button', { type: 'submit', className: 'main' }, t('ok')),
        button('cancel', () => dialog.close()))));
    dialog.onclose = () => done(given);
    dialog.showModal();
    input.focus();
    input.select();
  });
}

/* Asks for the server's key and keeps it while the tab is open. False: none was given. */
let asking_key = null;
function askKey() {
  asking_key = asking_key || (async () => {
    let why = recall('key', 'sessionStorage') ? t('keyAgain') + ' ' : '', key;
    while ((key = await askFor(t('keyTitle'), why + t('keyField'), '', 'password')) && !/^[ -~]+$/.test(key))
      why = t('keyBad') + ' '; // no header holds it
    if (key) remember('key', key, 'sessionStorage');
    asking_key = null;
    return !!key;
  })();
  return asking_key;
}
