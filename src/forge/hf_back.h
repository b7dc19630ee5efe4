/* hf_back: from a GGUF file to a folder of transformers. Between who makes the config (hf_back_config.c), who plans
 * (hf_back.c) and who writes (hf_back_write.c). */
#ifndef HN_HF_BACK_H
#define HN_HF_BACK_H

#include "forge/hf.h"

/* The config of f->of for the numbers of the file: m, of its keys alone. *out: json_decref it. HONE_E_UNSUPPORTED: the
 * class has no member for something. */
hone_status hn_hf_back_config(json_t **out, const hn_hf *f, const hone_model *m, hone_error *err);

/* That file of the folder is ours from now on: a failure takes it away. */
hone_status hn_hf_back_tell(const hn_hf *f, const char *file, hone_error *err);
/* A file of the folder. */
hone_status hn_hf_back_json(const hn_hf *f, const char *file, const json_t *o, hone_error *err);

/* Bytes of the folder's tensors, in their order, into one file of safetensors or several (f->c, f->t, f->v planned);
 * those of layers behind pooling into their own. */
hone_status hn_hf_back_write(hn_hf *f, hone_error *err);
/* "float32", "float16", "bfloat16": of most elements; once types are chosen. */
const char *hn_hf_back_dtype(const hn_hf *f);
hone_status hn_hf_back_types(hn_hf *f, hone_error *err);

/* RWKV's (hf_back_rwkv.c): the class of an architecture, NULL: it is none; sources, config, plan and numbers of f; and
 * the vocabulary's file, once the folder is there. */
const hn_hf_class *hn_hf_back_rwkv_class(const char *arch);
hone_status hn_hf_back_rwkv(hn_hf *f, const hone_model *m, hone_error *err);
hone_status hn_hf_back_world(const hn_hf *f, hone_error *err);

/* modules.json of sentence-transformers, and what it names but tensors. */
hone_status hn_hf_back_modules_write(const hn_hf *f, hone_error *err);
/* The folder of the layer behind pooling whose matrix t is, there "linear.weight"; NULL: it is none. */
const char *hn_hf_back_folder(const hn_hf *f, const hn_ckpt_tensor *t);

#endif
