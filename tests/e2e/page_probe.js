/* probe: what the tests of the page ask of its document; put into the page by page_browser.py before its own script. */
'use strict';

/* What a message may consist of: elements, and the attributes of each. */
const PROBE_ALLOWED = {
  P: 'dir', EM: '', STRONG: '', DEL: '', CODE: 'class', PRE: 'tabindex role aria-label dir', A: 'href rel target',
  UL: 'dir', OL: 'dir start', LI: '', BLOCKQUOTE: 'dir', HR: '', BR: '', H3: 'dir', H4: 'dir', H5: 'dir', H6: 'dir',
  TABLE: '', THEAD: '', TBODY: '', TR: '', TH: 'class dir', TD: 'class dir', DIV: 'class tabindex role',
  SPAN: 'class title', BUTTON: 'type class',
};

const probe = {
  /* A text as Markdown, all at once. */
  markdown(text) {
    const root = document.createElement('div');
    new MarkdownView(root).update(text, true);
    return root;
  },

  /* Its elements without attributes. */
  bare(text) {
    const root = this.markdown(text);
    for (const e of root.querySelectorAll('*')) for (const a of [...e.attributes]) e.removeAttribute(a.name);
    return root.innerHTML;
  },

  /* Those of the texts that become something else when they come letter by letter. */
  changing(texts) {
    return texts.filter((text) => {
      const root = document.createElement('div'), view = new MarkdownView(root);
      for (let i = 1; i <= text.length; i++) view.update(text.slice(0, i), false);
      view.update(text, true);
      return root.innerHTML !== this.markdown(text).innerHTML;
    });
  },

  /* Elements, attributes and addresses below root that are not allowed. */
  foreign(root) {
    const bad = [];
    for (const e of root.querySelectorAll('*')) {
      const allowed = PROBE_ALLOWED[e.tagName];
      if (allowed === undefined || e.namespaceURI !== 'http://www.w3.org/1999/xhtml') bad.push(e.outerHTML);
      const names = (allowed || '').split(' ');
      for (const a of e.attributes) if (!names.includes(a.name)) bad.push(a.name + ' in ' + e.outerHTML);
      if (e.tagName !== 'A') continue;
      const followed = /^(https?|mailto):/.test(e.getAttribute('href')) && /^(https?|mailto):$/.test(e.protocol);
      const seen = e.textContent.includes(e.hostname) && !e.username;
      if (!followed || !seen || e.rel !== 'noopener noreferrer nofollow') bad.push(e.outerHTML);
    }
    return bad;
  },

  /* The same of texts, each by itself and part of the document, so that what would load or run does. */
  foreignTexts(texts) {
    return texts.flatMap((text) => {
      const root = this.markdown(text);
      document.body.append(root);
      const bad = this.foreign(root);
      root.remove();
      return bad;
    });
  },

  /* What is spelt out of a text, and all of it as letters. */
  spelt(text) {
    const root = this.markdown(text);
    const marked = [...root.querySelectorAll('.unseen, .address')].map((e) => e.textContent + e.title);
    return marked.join(' ') + root.textContent;
  },

  /* How deep elements are nested in a text. */
  depth(text) {
    const below = (e) => Array.from(e.children).reduce((most, x) => Math.max(most, 1 + below(x)), 0);
    return below(this.markdown(text));
  },

  /* Visible text whose contrast is below 4.5 (WCAG 2.2, 1.4.3). */
  pale() {
    const numbers = (s) => s.match(/[\d.]+/g).map(Number);
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
    const behind = (e) => {
      const c = numbers(getComputedStyle(e).backgroundColor);
      return c.length < 4 || c[3] > 0 ? c : behind(e.parentElement);
    };
    return [...document.body.querySelectorAll('*')].flatMap((e) => {
      const text = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
      if (!text || !e.checkVisibility() || e.disabled || e.closest('script')) return [];
      const a = light(numbers(getComputedStyle(e).color)), b = light(behind(e));
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      return ratio < 4.5 ? [[e.outerHTML.slice(0, 80), ratio]] : [];
    });
  },

  /* What is to be pressed and smaller than 24 pixels (2.5.8). */
  small() {
    return [...document.querySelectorAll('button, input, select, summary, textarea')].flatMap((e) => {
      const r = e.getBoundingClientRect();
      if (!e.checkVisibility() || !r.width || (r.width >= 24 && r.height >= 24)) return [];
      return [[e.outerHTML.slice(0, 80), r.width, r.height]];
    });
  },

  /* What reaches past the right edge and makes the page or the list of messages scroll sideways. */
  wide(width) {
    const main = document.getElementById('main');
    if (document.documentElement.scrollWidth <= width && main.scrollWidth <= main.clientWidth) return [];
    return [...document.querySelectorAll('*')].filter((e) => e.getBoundingClientRect().right > width)
      .map((e) => e.outerHTML.slice(0, 100));
  },

  /* Fields without a label of their own; what a placeholder says is gone once something is written. */
  unlabelled() {
    const fields = document.querySelectorAll('input:not([type=file]), select, textarea, meter');
    const named = (e) => e.hasAttribute('aria-label') || [...e.labels].some((l) => l.textContent.trim());
    return [...fields].filter((e) => !named(e)).map((e) => e.outerHTML.slice(0, 100));
  },

  /* Strings that lack a language, or whose languages take different values. */
  untranslated() {
    const values = (s) => [...s.matchAll(/\{\w+\}/g)].map((m) => m[0]).sort().join();
    return Object.keys(STRINGS).filter((k) => {
      const [en, de, ...more] = STRINGS[k];
      return !en || !de || more.length || values(en) !== values(de);
    });
  },

  /* The field of the settings with that label. */
  setting(label) {
    const all = [...document.querySelectorAll('#settings .field')];
    return all.find((f) => f.querySelector('label').textContent === label).querySelector('input, textarea, select');
  },

  /* SHA-256 of so many letters a, by the page's own. */
  plainHash(n) {
    return Array.from(sha256Plain(new Uint8Array(n).fill(97)), (b) => b.toString(16).padStart(2, '0')).join('');
  },
};
