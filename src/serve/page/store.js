/* store: what the browser keeps: conversations in IndexedDB, a few choices in localStorage, the key in sessionStorage.
 * Where one of them is not allowed, memory does until the page is closed, and `failed` says why. */
const store = {
  db: null,
  failed: '',
  memory: new Map(),
  known: new Set(), // ids of what was seen in the database: what is not there any more was deleted in another tab
  onFull: () => {},
  onGone: () => {},

  open() {
    return new Promise((done) => {
      const fail = (why) => { this.failed = String(why); done(); };
      let request;
      try {
        request = indexedDB.open('hone', 1);
      } catch (e) {
        return fail(e.message);
      }
      request.onupgradeneeded = () => request.result.createObjectStore('talks', { keyPath: 'id' });
      request.onerror = () => fail(request.error && request.error.message);
      request.onblocked = () => fail('blocked');
      request.onsuccess = () => {
        this.db = request.result;
        this.db.onversionchange = () => this.db.close();
        done();
      };
    });
  },

  /* One request in a transaction of its own; what it answers. */
  ask(mode, make) {
    return new Promise((done, fail) => {
      const transaction = this.db.transaction('talks', mode);
      const request = make(transaction.objectStore('talks'));
      transaction.oncomplete = () => done(request.result);
      transaction.onerror = transaction.onabort = () => fail(transaction.error || request.error);
    });
  },

  async all() {
    const all = this.db ? await this.ask('readonly', (s) => s.getAll()) : [...this.memory.values()];
    for (const talk of all) this.known.add(talk.id);
    return all;
  },
  async get(id) {
    const talk = this.db ? await this.ask('readonly', (s) => s.get(id)) : this.memory.get(id);
    if (talk) this.known.add(id);
    return talk;
  },
  /* True: it is kept. merge(stored) takes over first what other tabs have written, in the same transaction, or answers
   * what to write in place of talk; one that they have deleted is not written again. Without merge it is written at
   * once, as it must be where the page ends. */
  async put(talk, merge) {
    if (!this.db) {
      this.memory.set(talk.id, talk);
      return true;
    }
    let gone = false;
    const write = (s) => {
      const stored = s.get(talk.id);
      stored.onsuccess = () => {
        gone = !stored.result && this.known.has(talk.id);
        const whole = (stored.result && merge(stored.result)) || talk;
        if (!gone) s.put(whole);
      };
      return stored;
    };
    const last = (s) => {
      const request = s.put(talk);
      request.transaction.commit?.(); // a page that ends does not live to see that nothing follows
      return request;
    };
    try {
      await this.ask('readwrite', merge ? write : last);
    } catch (e) {
      this.onFull(e);
      return false;
    }
    if (gone) this.onGone(talk.id);
    else this.known.add(talk.id);
    return !gone;
  },
  async remove(id) {
    if (this.db) await this.ask('readwrite', (s) => s.delete(id));
    else this.memory.delete(id);
    this.known.delete(id); // behind a write that was under way
  },

  /* { used, quota } in bytes, or null where the browser does not say. */
  async space() {
    if (!navigator.storage || !navigator.storage.estimate) return null;
    const e = await navigator.storage.estimate();
    return { used: e.usage, quota: e.quota };
  },
};

/* Small values by name, in localStorage (choices) or sessionStorage (the key). */
function recall(name, area) {
  try {
    return window[area || 'localStorage'].getItem('hone.' + name);
  } catch { return store.memory.get('.' + name) || null; }
}

/* True: it is kept beyond this page. */
function remember(name, value, area) {
  try {
    if (value === null) window[area || 'localStorage'].removeItem('hone.' + name);
    else window[area || 'localStorage'].setItem('hone.' + name, value);
    return true;
  } catch {
    store.memory.set('.' + name, value);
    return false;
  }
}
