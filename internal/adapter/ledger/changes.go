package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// Prefixes of the keys of versions with which workloads failed, and of sources that change again and again.
const (
	failedWord = "failed."
	seriesWord = "series."
)

// ofWord separates a text from its input: a key may contain only a digest of the name.
const ofWord = " of "

// maxUnwritten is how many versions and sources without room on record are kept in memory.
const maxUnwritten = 256

// Failure returns the workloads that failed with a version.
func (r *Records) Failure(c input.Change) record.Failure {
	key := failureKey(record.Published(c))
	r.mu.Lock()
	defer r.mu.Unlock()
	_, f, _ := parseFailure(key, r.text(key))
	return f
}

// AddFailure adds a workload that failed with a version, and returns all of them. It is written within a second or
// two. If the record has no room for it, it is only kept in memory, and full explains that.
func (r *Records) AddFailure(c input.Change, id string, now time.Time) (f record.Failure, added bool, full string) {
	of := record.Published(c)
	key := failureKey(of)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, f, _ = parseFailure(key, r.text(key))
	if f, added = f.With(id, now); added {
		full = r.put(key, of.Namespace, of.Version+" "+f.Encode()+ofWord+of.ID.String())
	}
	return f, added, full
}

// Failures lists the versions on record with which workloads failed, as record.Published names them.
func (r *Records) Failures() map[input.Change]record.Failure {
	found := map[input.Change]record.Failure{}
	for _, o := range r.changeTexts() {
		if of, f, ok := parseFailure(o.key, o.text); ok {
			found[of] = f
		}
	}
	return found
}

// Series returns how often in a row a source changed, false when there is nothing on record.
func (r *Records) Series(of input.Change) (record.Series, bool) {
	key := seriesKey(of)
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := parseSeries(key, r.text(key))
	return s, ok
}

// PutSeries stores how often in a row a source changed; the zero series removes it. If the record has no room for
// it, it is only kept in memory, and PutSeries explains that.
func (r *Records) PutSeries(of input.Change, s record.Series) (full string) {
	key := seriesKey(of)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s == (record.Series{}) {
		delete(r.unwritten, key)
		r.shardWith(key).set(key, nil)
		return ""
	}
	return r.put(key, of.Namespace, s.Version+" "+s.Encode()+ofWord+of.ID.String())
}

// text is the newest text of a key. The caller holds the lock.
func (r *Records) text(key string) string {
	text, ok := r.unwritten[key]
	if !ok {
		text, _ = r.shardWith(key).get(key)
	}
	return text
}

// put stores the text of a key, at least in memory. The caller holds the lock.
func (r *Records) put(key, namespace, text string) (full string) {
	s := r.shardWith(key)
	own, all := s.taken.with(key, lot{namespace, len(key) + len(text)})
	// A stop matters most where there are many workloads, so the larger bound applies.
	delete(r.unwritten, key)
	if full = forKnown().refuse(s, namespace, own, all); full == "" {
		s.set(key, &text)
	} else if len(r.unwritten) < maxUnwritten {
		r.unwritten[key] = text
	}
	return full
}

// SweepChanges removes the versions that aren't wanted, the series that don't last, and unreadable texts. Both
// functions are called outside any lock; what is put meanwhile stays.
func (r *Records) SweepChanges(wanted func(of input.Change) bool, lasts func(record.Series) bool) {
	for _, o := range r.changeTexts() {
		if of, _, ok := parseFailure(o.key, o.text); ok && wanted(of) {
			continue
		}
		if s, ok := parseSeries(o.key, o.text); ok && lasts(s) {
			continue
		}
		r.mu.Lock()
		if o.shard != "" {
			r.shards[o.shard].removeIf(o.key, o.text)
		} else if r.unwritten[o.key] == o.text {
			delete(r.unwritten, o.key)
		}
		r.mu.Unlock()
	}
}

// changeTexts are the newest texts of all versions and series on record.
func (r *Records) changeTexts() (all []ownedKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.shards {
		for key, l := range s.taken.lots {
			_, newer := r.unwritten[key]
			if text, ok := s.get(key); ok && !newer && isChange(key) {
				all = append(all, ownedKey{owner{namespace: l.namespace}, s.name, key, text})
			}
		}
	}
	for key, text := range r.unwritten {
		all = append(all, ownedKey{key: key, text: text})
	}
	return all
}

func isChange(key string) bool {
	return strings.HasPrefix(key, failedWord) || strings.HasPrefix(key, seriesWord)
}

// failureKey is the key of a version in a ConfigMap: "failed.ConfigMap_shop_app_77ab01c9de", without a namespace
// for one that all namespaces share.
func failureKey(of input.Change) string {
	return inputKey(failedWord, of, "_"+of.Version)
}

// seriesKey is the key of a source in a ConfigMap: "series.ConfigMap_shop_app".
func seriesKey(of input.Change) string {
	return inputKey(seriesWord, of, "")
}

// inputKey names an input. A name that isn't allowed in a key, or is too long, is replaced by a digest.
func inputKey(word string, of input.Change, end string) string {
	name := of.ID.Name
	if readable := len(word) + len(of.ID.Kind) + len(of.Namespace) + len(name) + len(end) + 2; !of.ID.IsSource() || readable > maxKey {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return word + string(of.ID.Kind) + "_" + of.Namespace + "_" + name + end
}

// parseFailure parses a key and its text.
func parseFailure(key, text string) (of input.Change, f record.Failure, ok bool) {
	of, text = parseChange(key, text)
	if of.IsZero() || failureKey(of) != key {
		return input.Change{}, record.Failure{}, false
	}
	f, err := record.DecodeFailure(text)
	return of, f, err == nil
}

// parseSeries parses a key and its text.
func parseSeries(key, text string) (s record.Series, ok bool) {
	of, text := parseChange(key, text)
	if of.IsZero() || seriesKey(of) != key {
		return record.Series{}, false
	}
	s, err := record.DecodeSeries(of.Version, text)
	return s, err == nil
}

// parseChange parses the input and its version, and returns the rest of the text.
func parseChange(key, text string) (of input.Change, rest string) {
	owner, isOwned := ownerOf(key, text)
	words, subject, _ := strings.Cut(text, ofWord)
	version, rest, _ := strings.Cut(words, " ")
	kind, name, _ := strings.Cut(subject, "/")
	for _, k := range []input.Kind{input.KindConfigMap, input.KindSecret, input.KindImage} {
		if isOwned && kind == strings.ToLower(string(k)) {
			of = input.Change{Namespace: owner.namespace, ID: input.ID{Kind: k, Name: name}, Version: version}
		}
	}
	return of, rest
}

// affected are the workloads that need another decision when another writer overruled a text:
// the workload of an entry, or those that failed with a version.
func affected(key, text string) (keys []kube.Key) {
	if id, ok := idOf(text); ok {
		return []kube.Key{id}
	}
	_, f, _ := parseFailure(key, text)
	for _, id := range f.On {
		if failed, err := kube.ParseID(id); err == nil {
			keys = append(keys, failed)
		}
	}
	return keys
}
