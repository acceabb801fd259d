// Package fingerprint knows how the content of a ConfigMap or Secret becomes a
// version that can be stored, compared and shown.
//
// A [Hasher] reduces an object to a [Content]: one short digest per key, never a
// value. From a Content any number of versions can be taken, one per workload,
// because a workload that names two keys must not notice a change of a third. Of an
// object with too many keys, only the digest of the whole is kept.
//
//	content := hasher.Content(cm.Data, cm.BinaryData)
//	version := content.Version(fingerprint.SomeKeys("nginx.conf"))
//
// A [Version] carries its basis (algorithm and key set) beside its sum. Two
// versions of different basis cannot be compared: a new algorithm or another
// list of keys is a new baseline, not a change, and doesn't restart pods.
package fingerprint
