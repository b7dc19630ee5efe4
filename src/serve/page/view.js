/* view: a message as it is seen: text, reasoning, calls of tools, figures, what can be done with it. Refuses to know
 * the server; what is done is done by app. */

/* Probability of a natural logarithm, in percent. */
const percent = (logprob) => Math.round(Math.exp(logprob) * 100);

/* JSON, line by line where that says the same; else, or where it is still coming, as it is. */
function pretty(text) {
  try {
    const o = JSON.parse(text);
    if (JSON.stringify(o) === text.replace(/("[^"\\]*(?:\\.[^"\\]*)*")|\s+/g, '$1')) return JSON.stringify(o, null, 2);
  } catch { /* not whole */ }
  return text;
}

class MessageView {
  constructor(talk, node) {
    this.talk = talk;
    this.node = node;
    this.head = el('div', { className: 'who' });
    this.files = el('div', {}, (node.files || []).map((f) => el('details', { className: 'file' },
      el('summary', {}, shownText(f.name)), el('pre', { tabIndex: 0 }, shown(f.text)))));
    this.thought = el('div', { className: 'markdown' });
    this.summary = el('summary', {});
    this.reasoning = el('details', { className: 'reasoning', hidden: true }, this.summary, this.thought);
    this.body = el('div', { className: node.role === 'assistant' ? 'markdown' : 'plain', dir: 'auto' });
    this.calls = el('div', {});
    this.error = el('p', { className: 'error', hidden: true });
    this.figures = el('p', { className: 'figures' });
    this.actions = el('div', { className: 'row actions' });
    this.root = el('li', { className: 'message ' + node.role, tabIndex: -1 }, this.head, this.files, this.reasoning,
      this.body, this.calls, this.error, this.figures, this.actions);
    this.root.dataset.id = node.id;
    this.markdown = new MarkdownView(this.body);
    this.thinking = new MarkdownView(this.thought);
    this.tokens = false; // they are shown instead of the text
    this.editing = false;
    this.update();
  }

  /* All of it anew, but for text that only grew. */
  update() {
    if (this.editing) return;
    const n = this.node;
    const who = { user: t('you'),
      assistant: t('answer'),
      tool: t('toolResult', { name: shownText(n.name || '') }) }[n.role];
    this.head.replaceChildren(el('h2', {}, who), n.model ? el('span', { className: 'dim' }, shownText(n.model)) : '');
    this.grow();
    this.drawCalls();
    this.drawFigures();
    this.drawActions();
  }

  /* What is shown is made anew by the next update; not what somebody writes. */
  forget() {
    if (this.editing) return;
    this.markdown.clear();
    this.thinking.clear();
  }

  /* Somebody writes in it. */
  busy() {
    return this.editing || [...this.calls.querySelectorAll('textarea')].some((x) => x.value);
  }

  running() {
    return app.running && app.running.node === this.node;
  }

  /* What a stream adds to. */
  grow() {
    const n = this.node, ended = !this.running();
    if (this.tokens) drawTokens(this.body, n);
    else if (n.role !== 'assistant') fill(this.body, shown(n.content));
    else this.markdown.update(n.content, ended);
    this.reasoning.hidden = !n.reasoning;
    if (n.reasoning) {
      const s = number((n.stats && n.stats.thought) || 0, 1), still = !ended && !n.content && !n.calls;
      this.summary.textContent =
        n.stats && n.stats.thought ? t(still ? 'reasoningNow' : 'reasoningDone', { s }) : t('reasoning');
      this.thinking.update(n.reasoning, ended);
    }
    if (!ended) {
      if (n.calls) this.drawCalls();
      const p = n.progress;
      this.figures.textContent = n.content || n.reasoning || n.calls ? '' : p && p.total
        ? t('reading', { done: number(p.processed || 0), total: number(p.total) }) : t('waiting');
    }
    this.error.hidden = !n.error;
    fill(this.error, shown(n.error || ''));
  }

  drawCalls() {
    const n = this.node, wanted = !this.running() && !versions(this.talk, n.id).length, fields = [];
    const drawn = JSON.stringify([n.calls, wanted, language]);
    if (drawn === this.drawn) return; // the focus stays
    this.drawn = drawn;
    const pasted = [...this.calls.querySelectorAll('textarea')].map((x) => x.value);
    const cards = (n.calls || []).map((c) => {
      const result = wanted ? el('textarea', { rows: 2, dir: 'auto', value: pasted[fields.length] }) : null;
      if (result) fields.push(result);
      return el('section', { className: 'call' }, el('h3', {}, t('call', { name: shownText(c.name) })),
        el('pre', { tabIndex: 0, dir: 'ltr' }, shown(pretty(c.arguments))),
        result ? field(t('result', { name: shownText(c.name) }), result) : null);
    });
    if (fields.length) {
      cards.push(
        el('div', { className: 'row' }, button('sendResults', () => app.sendResults(n, fields.map((f) => f.value)))));
    }
    this.calls.replaceChildren(...cards);
  }

  drawFigures() {
    const n = this.node, s = n.stats || {}, out = [];
    if (n.role !== 'assistant' || this.running()) return;
    const roof = app.props && app.props.model === n.model && app.props.roof && app.props.roof.decode_tok_s;
    if (s.rate) {
      const rate = number(s.rate, 1);
      out.push(roof > 0
          ? t('rateRoof',
              { rate, percent: number((100 * s.rate) / roof), roof: t('rate', { rate: number(roof, 1) }) })
          : t('rate', { rate }));
    }
    if (s.tokens !== undefined) out.push(t('nTokens', { n: number(s.tokens) }));
    if (s.ttft !== undefined) out.push(t('ttft', { ms: number(s.ttft) }));
    if (s.cached && s.prompt) out.push(t('cached', { n: number(s.cached), of: number(s.prompt) }));
    if (s.draft) out.push(t('drafts', { n: number(s.accepted || 0), of: number(s.draft) }));
    const end = {
      stop: 'endStop',
      length: 'endLength',
      tool_calls: 'endCalls',
      stopped: 'endStopped',
      error: 'endError'
    }[n.end] ||
      'endLost';
    clearTimeout(this.later);
    if (n.end || Date.now() - n.changed > 9000 || !n.changed) out.push(t(end));
    else this.later = setTimeout(() => this.drawFigures(), 9000); // it is coming in another tab, perhaps
    if (s.seed) out.push(t('seedIs', { seed: s.seeds || s.seed }));
    this.figures.replaceChildren(out.join(' · '));
    if (n.hash) this.figures.append(' · ', this.hashButton());
  }

  /* Shows the beginning of the answer's hash; copies all of it. */
  hashButton() {
    const hash = this.node.hash, copy = async () => say(t(await copyText(hash) ? 'copied' : 'notCopied'));
    const button = el('button', { type: 'button', className: 'hash', title: hash, onclick: copy },
      'SHA-256 ' + hash.slice(0, 16));
    button.setAttribute('aria-label', t('copyHash', { hash }));
    return button;
  }

  drawActions() {
    const n = this.node, all = versions(this.talk, n.parent), at = all.indexOf(n), out = [];
    if (all.length > 1) {
      const go = (i, name, sign) => el('button', {
        type: 'button',
        className: name,
        disabled: !all[i],
        'aria-label': t(name),
        onclick: () => app.show(this.talk, all[i], name)
      },
        sign);
      out.push(go(at - 1, 'previous', '‹'),
        el('span', { className: 'dim', role: 'img', 'aria-label': t('branchOf', { i: at + 1, n: all.length }) },
          `${at + 1}/${all.length}`),
        go(at + 1, 'next', '›'));
    }
    out.push(button('copy', async () => say(t(await copyText(n.content) ? 'copied' : 'notCopied'))));
    if (!this.running()) {
      out.push(button('edit', () => this.edit()));
      if (n.role === 'assistant') out.push(button('again', () => app.answer(this.talk, n.parent, true)));
      else if (!versions(this.talk, n.id).length) out.push(button('retry', () => app.answer(this.talk, n.id)));
      if (n.role === 'assistant' && !n.calls && n.content)
        out.push(button('continue', () => app.continue(this.talk, n)));
      if (n.logprobs) {
        const toggle = button(this.tokens ? 'text' : 'tokens', () => {
          this.tokens = !this.tokens;
          this.markdown.clear();
          this.update();
          this.actions.querySelector('[aria-pressed]').focus();
        }, { 'aria-pressed': String(this.tokens) });
        out.push(toggle);
      }
      out.push(button('delete', () => app.remove(this.talk, n)));
    }
    const focused = this.actions.contains(document.activeElement) && document.activeElement.textContent;
    this.actions.replaceChildren(...out);
    const again = focused && out.find((b) => b.textContent === focused);
    if (again) again.focus({ preventScroll: true });
  }

  /* The text in a field; saved as another version, which is asked again where it is not the model's own. */
  edit() {
    if (this.editing) return this.body.firstChild.focus();
    const n = this.node, area = el('textarea', {
      value: n.content,
      rows: Math.min(16, n.content.split('\n').length + 1),
      dir: 'auto',
      'aria-label': t('edit')
    });
    const done = () => {
      this.editing = false;
      this.markdown.clear();
      this.update();
      this.actions.querySelector('button').focus();
    };
    const save = () => {
      if (app.running) return;
      done();
      app.edited(this.talk, n, area.value);
    };
    area.onkeydown = (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape') { event.stopPropagation(); done(); }
      if (event.key === 'Enter' && !event.shiftKey && n.role === 'user') {
        event.preventDefault();
        save();
      }
    };
    this.editing = true;
    this.body.replaceChildren(area);
    this.actions.replaceChildren(button(n.role === 'assistant' ? 'save' : 'saveSend', save), button('cancel', done));
    area.focus();
  }
}

/* The tokens of an answer with their probabilities; what could have stood instead shows where one has the focus. */
function drawTokens(root, node) {
  const others = el('p', { className: 'others', 'aria-live': 'polite' });
  const tell = (x) => {
    const one = ([token, logprob]) => el('li', {}, el('code', {}, shown(token)), ` ${percent(logprob)} %`);
    others.replaceChildren(
      t('alternatives', { token: JSON.stringify(shownText(x[0])), p: percent(x[1]) }), el('ul', {}, x[2].map(one)));
  };
  const list = el('div', { className: 'token-list', role: 'group', 'aria-label': t('tokenView') },
    node.logprobs.map((x, i) => el('button', {
      type: 'button',
      className: 'token p' + Math.min(9, Math.floor(percent(x[1]) / 10)),
      tabIndex: i ? -1 : 0,
      onfocus: () => tell(x),
      onmouseenter: () => tell(x)
    },
                        shown(x[0].replace(/\n/g, '⏎')), el('sub', {}, String(percent(x[1]))))));
  list.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = [...list.children].indexOf(document.activeElement), to = list.children[at + step];
    if (!step || at < 0 || !to) return;
    event.preventDefault();
    list.children[at].tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  root.replaceChildren(list, others);
}
