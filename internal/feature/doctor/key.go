package doctor

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// readKey compares the name of the installation's key with those on record. Without keyed
// digests, it doesn't read the key.
func (f *Facts) readKey(ctx context.Context, o Options, name string) {
	f.Record.Key = name
	used := map[string][]string{}
	for key, entry := range f.Record.Stored.Entries {
		ids := keyIDs(entry)
		if len(ids) > 0 {
			f.Record.Keyed++
		}
		for _, id := range ids {
			used[id] = append(used[id], key.String())
		}
	}
	if f.Record.Keyed == 0 {
		return
	}
	key, err := access.ReadInstallationKey(ctx, o.Client, o.Namespace, name)
	if err != nil {
		f.Record.KeyErr = err
		return
	}
	delete(used, fingerprint.NewKeyedHasher(key).KeyID())
	for _, id := range sortedKeys(used) {
		f.Record.OtherKey = append(f.Record.OtherKey, used[id]...)
	}
	slices.Sort(f.Record.OtherKey)
	f.Record.OtherKey = slices.Compact(f.Record.OtherKey)
}

// keyIDs name the keys that the entry's versions were computed with, each once.
func keyIDs(e record.Entry) []string {
	if e.Left || !e.GoneAt.IsZero() {
		return nil // it isn't compared anymore
	}
	var ids []string
	for _, given := range e.Inputs {
		if id := given.Version.KeyID(); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// withAnotherKey ends the advice for a lost key.
const withAnotherKey = "restore the Secret from a backup, or restart the workloads whose Secrets changed before the controller's next start, which takes a new baseline"

func checkKey(f Facts) Check {
	at := fmt.Sprintf("secret/%s in namespace %s", f.Record.Key, f.Namespace)
	switch {
	case f.Record.Err != nil:
		return unread(Key, f.Record.Err)
	case f.Record.Keyed == 0:
		return ok(Key, "no Secret digest is on record")
	case apierrors.IsNotFound(f.Record.KeyErr):
		return Check{
			Name: Key, Result: Problem, Found: at + ", the key of the recorded Secret digests, does not exist",
			Do: "check again in a minute, because a running leader creates it again; otherwise " + withAnotherKey,
		}
	case f.Record.KeyErr != nil:
		return unread(Key, f.Record.KeyErr)
	case len(f.Record.OtherKey) == 0:
		return ok(Key, "the recorded Secret digests (%s) were made with the key in %s", counted(f.Record.Keyed, "workload"), at)
	}
	c := Check{
		Name: Key, Result: Problem, Details: some(f.Record.OtherKey),
		Found: fmt.Sprintf("%s was replaced: the recorded Secret digests of %d of %s were made with another key", at, len(f.Record.OtherKey), counted(f.Record.Keyed, "workload")),
		Do:    "if the leader has been running since before the replacement, delete the Secret, and the leader creates it again with its own key within a minute; otherwise " + withAnotherKey,
	}
	if len(f.Record.OtherKey) < f.Record.Keyed {
		c.Result, c.Do = Warning, "if the controller was started since then, it uses the new key: restart the listed workloads whose Secrets changed before the start; if not, delete the Secret, and the leader creates it again with its own key"
	}
	return c
}
