package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// changeWord is the prefix of the key of an input that is stopped or damped. Programs that don't
// know it take it for a kind that isn't installed, and remove the key.
const changeWord = "change."

// Change returns what is on record of an input, whichever version of it the change is; false
// when there is nothing readable.
func (r *Records) Change(c input.Change) (record.Change, bool) {
	key := changeKey(c)
	r.mu.Lock()
	text, ok := r.unwritten[key]
	if !ok {
		text, _ = r.shardWith(key).get(key)
	}
	r.mu.Unlock()
	of, known, ok := parseChange(key, text)
	return known, ok && of == c.Subject()
}

// maxUnwritten is how many inputs without room on record are kept in memory.
const maxUnwritten = 256

// PutChange stores what is to be remembered of an input. It is written within a second or two.
// If the record has no room for it, it is only kept in memory, and PutChange explains that.
func (r *Records) PutChange(c input.Change, known record.Change) (full string) {
	key, text := changeKey(c), c.ID.String()+" "+known.Encode()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.shardWith(key)
	own, all := s.taken.with(key, lot{c.Namespace, len(key) + len(text)})
	// A stop matters most where there are many workloads, so the larger bound applies.
	delete(r.unwritten, key)
	if full = forKnown().refuse(s, c.Namespace, own, all); full == "" {
		s.set(key, &text)
	} else if len(r.unwritten) < maxUnwritten {
		r.unwritten[key] = text
	}
	return full
}

// DropChange removes an input that is neither stopped nor damped any more.
func (r *Records) DropChange(c input.Change) {
	key := changeKey(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unwritten, key)
	r.shardWith(key).set(key, nil)
}

// Changes lists the inputs on record, each without a version.
func (r *Records) Changes() map[input.Change]record.Change {
	found := map[input.Change]record.Change{}
	for _, o := range r.changeTexts() {
		if of, known, ok := parseChange(o.key, o.text); ok {
			found[of] = known
		}
	}
	return found
}

// SweepChanges removes the inputs that are over, and unreadable ones. over is called outside any
// lock; an input that is put meanwhile stays.
func (r *Records) SweepChanges(over func(of input.Change, known record.Change) bool) {
	for _, o := range r.changeTexts() {
		if of, known, ok := parseChange(o.key, o.text); ok && !over(of, known) {
			continue
		}
		r.mu.Lock()
		if o.shard == "" {
			delete(r.unwritten, o.key)
		} else {
			r.shards[o.shard].removeIf(o.key, o.text)
		}
		r.mu.Unlock()
	}
}

// changeTexts are the newest texts of all inputs on record.
func (r *Records) changeTexts() (all []ownedKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.shards {
		for key, l := range s.taken.lots {
			_, newer := r.unwritten[key]
			if text, ok := s.get(key); ok && !newer && strings.HasPrefix(key, changeWord) {
				all = append(all, ownedKey{owner{namespace: l.namespace}, s.name, key, text})
			}
		}
	}
	for key, text := range r.unwritten {
		all = append(all, ownedKey{key: key, text: text})
	}
	return all
}

// changeKey is the input's key in a ConfigMap: "change.ConfigMap_shop_app", without a namespace
// for one that all namespaces share. A name that isn't allowed in a key, or is too long, is
// replaced by a digest.
func changeKey(c input.Change) string {
	name := c.ID.Name
	if readable := len(changeWord) + len(c.ID.Kind) + len(c.Namespace) + len(name) + 2; !c.ID.IsSource() || readable > maxKey {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return changeWord + string(c.ID.Kind) + "_" + c.Namespace + "_" + name
}

// parseChange parses a key and its text. The text begins with the input, because the key may
// contain a digest of its name.
func parseChange(key, text string) (of input.Change, known record.Change, ok bool) {
	owner, isOwned := ownerOf(key, text)
	if !isOwned || !strings.HasPrefix(key, changeWord) {
		return input.Change{}, record.Change{}, false
	}
	subject, rest, _ := strings.Cut(text, " ")
	kind, name, _ := strings.Cut(subject, "/")
	for _, k := range []input.Kind{input.KindConfigMap, input.KindSecret, input.KindImage} {
		if kind == strings.ToLower(string(k)) {
			of = input.Change{Namespace: owner.namespace, ID: input.ID{Kind: k, Name: name}}
		}
	}
	known, err := record.DecodeChange(rest)
	return of, known, err == nil && changeKey(of) == key
}

// affected are the workloads that need another decision when another writer overruled a text:
// the workload of an entry, or those that failed with a version.
func affected(key, text string) (keys []kube.Key) {
	if id, ok := idOf(text); ok {
		return []kube.Key{id}
	}
	_, known, _ := parseChange(key, text)
	for _, failure := range known.Failures {
		for _, id := range failure.On {
			if failed, err := kube.ParseID(id); err == nil {
				keys = append(keys, failed)
			}
		}
	}
	return keys
}
