/* store: what the browser keeps: conversations in IndexedDB, a few choices in localStorage, the key in sessionStorage.
 * Where one of them is not allowed, memory does until the page is closed, and `failed` says why. */
const store = {
  db: null,
  failed: '',
  memory: new Map(),
  onFull: () => {},

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
    return this.db ? this.ask('readonly', (s) => s.getAll()) : [...this.memory.values()];
  },
  async get(id) {
    return this.db ? this.ask('readonly', (s) => s.get(id)) : this.memory.get(id);
  },
  /* True: it is kept. */
  async put(talk) {
    if (!this.db) {
      this.memory.set(talk.id, talk);
      return true;
    }
    try {
      await this.ask('readwrite', (s) => s.put(talk));
      return true;
    } catch (e) {
      this.onFull(e);
      return false;
    }
  },
  async remove(id) {
    if (this.db) await this.ask('readwrite', (s) => s.delete(id));
    else this.memory.delete(id);
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

function remember(name, value, area) {
  try {
    if (value === null) window[area || 'localStorage'].removeItem('hone.' + name);
    else window[area || 'localStorage'].setItem('hone.' + name, value);
  } catch {
    store.memory.set('.' + name, value);
  }
}
