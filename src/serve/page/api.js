/* api: how the server is asked: fetch with the key, streams of events, errors of kinds. Refuses to know the page. */

/* What went wrong: kind is 'key' (401), 'wait' (429, 503, with seconds), 'refused' (other 4xx), 'failed' (5xx, or told
 * in a stream), 'unreachable', 'lost' (in the middle of a stream); message is the server's or the browser's. */
class ApiError extends Error {
  constructor(kind, message, more) {
    super(message);
    this.kind = kind;
    Object.assign(this, more);
  }
}

async function errorOf(response) {
  let e = {};
  try { e = (await response.json()).error || {}; } catch { /* not ours: a proxy's page, perhaps */ }
  const why = isText(e.message) ? e.message : `${response.status} ${response.statusText}`;
  const seconds = Math.min(120, Math.max(1, parseInt(response.headers.get('retry-after'), 10) || 5));
  const more = { status: response.status, seconds, code: e.code, n_prompt: e.n_prompt_tokens, n_ctx: e.n_ctx };
  if (response.status === 401) return new ApiError('key', why, more);
  if (response.status === 429 || response.status === 503) return new ApiError('wait', why, more);
  return new ApiError(response.status < 500 ? 'refused' : 'failed', why, more);
}

/* The answer to one request, of status 2xx; else an ApiError (or AbortError) is thrown. body: JSON; undefined: GET. */
async function ask(path, body, signal) {
  const headers = {}, key = recall('key', 'sessionStorage');
  if (key) headers.Authorization = 'Bearer ' + key;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response =
      await fetch(path, { method: body === undefined ? 'GET' : 'POST', headers, body, signal, cache: 'no-store' });
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new ApiError('unreachable', e.message);
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

/* Gives each data of a stream of events to onData, as text; false from it ends. A stream that stops without having been
 * ended so was lost. */
async function readEvents(response, onData) {
  const reader = response.body.getReader(), decoder = new TextDecoder();
  let held = '';
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (e) {
      if (e.name === 'AbortError') throw e;
      throw new ApiError('lost', e.message);
    }
    if (piece.done) throw new ApiError('lost', '');
    held += decoder.decode(piece.value, { stream: true });
    const lines = held.split('\n');
    held = lines.pop();
    for (const line of lines) {
      if (line.startsWith('data:') && onData(line.slice(5).trim()) === false) return;
    }
  }
}

/* ---- an answer ---------------------------------------------------------------------------------- */

/* A seed of the page's own, so that it can be shown and used again. */
function randomSeed() {
  return String(crypto.getRandomValues(new Uint32Array(1))[0]);
}

/* The body of a request: messages with the settings of a talk. continued: the last message is to be gone on with. */
function requestBody(settings, messages, seed, continued) {
  const body = {}, checked = (text) => (JSON.parse(text), text); // as it was given: numbers may be large
  let head = '{"seed":' + seed;
  for (const f of SAMPLING) if (settings[f.name] !== undefined) body[f.name] = settings[f.name];
  if (settings.model) body.model = settings.model;
  if (settings.stop) body.stop = settings.stop.split('\n').filter((s) => s);
  if (settings.reasoning_effort) body.reasoning_effort = settings.reasoning_effort;
  if (settings.schema) {
    const schema = checked(settings.schema);
    head += `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":${schema}}}`;
  }
  if (settings.tools) head += ',"tools":' + checked(settings.tools);
  if (settings.logprobs) Object.assign(body, { logprobs: true, top_logprobs: 5 });
  const lora = Object.entries(settings.lora || {}).map(([id, scale]) => ({ id: Number(id), scale }));
  if (lora.length) body.lora = lora;
  if (continued) Object.assign(body, { continue_final_message: true, add_generation_prompt: false });
  Object.assign(body, { stream: true, stream_options: { include_usage: true, include_progress: true }, messages });
  return head + ',' + JSON.stringify(body).slice(1);
}

/* Asks and adds what comes to node; onChange after each piece. node.stats and node.end tell how it went; where nothing
 * was answered, node.stats are what they were. seed: the one in body. */
async function streamAnswer(node, body, seed, signal, onChange) {
  const asked = performance.now(), first = {};
  const response = await ask('v1/chat/completions', body, signal);
  const was = node.stats || {}, stats = (node.stats = { ...was, seed });
  let think_from = 0;
  await readEvents(response, (data) => {
    if (data === '[DONE]') return false;
    let o;
    try { o = JSON.parse(data); } catch { throw new ApiError('failed', data.slice(0, 200)); }
    if (o.error) throw new ApiError('failed', o.error.message || String(o.error), { code: o.error.code });
    const now = performance.now();
    if (o.prompt_progress) node.progress = o.prompt_progress;
    if (isText(o.model)) node.model = o.model;
    if (o.usage) { // of an answer that goes on: behind its own prompt, all of it
      stats.tokens = (was.tokens || 0) + o.usage.completion_tokens;
      if (was.prompt === undefined) Object.assign(stats, { prompt: o.usage.prompt_tokens,
        cached: (o.usage.prompt_tokens_details || {}).cached_tokens });
    }
    if (o.timings) Object.assign(stats, { rate: o.timings.predicted_per_second, draft: o.timings.draft_n,
      accepted: o.timings.draft_n_accepted });
    if (o.hone) {
      const seed = /"seed"\s*:\s*(\d+)/.exec(data.slice(data.lastIndexOf('"hone"'))); // its digits
      if (seed) stats.seed = seed[1];
      if (Number.isFinite(o.hone.ttft_ms)) stats.ttft = o.hone.ttft_ms;
    }
    for (const choice of o.choices || []) {
      const d = choice.delta || {}, reasoning = d.reasoning_content || d.reasoning;
      if (first.ms === undefined && (d.content || reasoning || d.tool_calls)) {
        first.ms = now - asked;
        if (stats.ttft === undefined) stats.ttft = first.ms;
      }
      if (reasoning) {
        think_from = think_from || now;
        node.reasoning = (node.reasoning || '') + reasoning;
        stats.thought = (now - think_from) / 1000;
      }
      if (d.content) node.content += d.content;
      for (const c of d.tool_calls || []) addCall(node, c);
      if (choice.logprobs && choice.logprobs.content) {
        node.logprobs = (node.logprobs || []).concat(choice.logprobs.content.map((x) => [x.token, x.logprob,
          (x.top_logprobs || []).map((y) => [y.token, y.logprob])]));
      }
      if (choice.finish_reason) node.end = choice.finish_reason;
    }
    onChange();
    return true;
  });
  if (!node.end) throw new ApiError('lost', '');
}

/* A fragment of a call. */
function addCall(node, c) {
  const calls = (node.calls = node.calls || []), f = c.function || {}, i = c.index || 0;
  if (i > calls.length || i < 0) return;
  if (i === calls.length) calls.push({ id: c.id || 'call_' + i, name: '', arguments: '' });
  if (isText(f.name)) calls[i].name += f.name;
  if (isText(f.arguments)) calls[i].arguments += f.arguments;
}
