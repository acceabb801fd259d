package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// TestUsed: a command measures what the controller does, which counts keys and texts by the
// namespaces of the workloads.
func TestUsed(t *testing.T) {
	t.Parallel()
	data := map[string]string{}
	want := Used{Name: "lockstep-state-07", Namespaces: map[string]int{}}
	for _, name := range []string{"shop/web", "shop/api", "blog/web"} {
		key := kube.Key{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: name[:4], Name: name[5:]}
		text, err := record.Entry{ID: key.ID(), UID: "1"}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		stored := storageKey(key)
		data[stored] = text
		want.All += len(stored) + len(text)
		want.Namespaces[key.Namespace] += len(stored) + len(text)
	}
	if diff := cmp.Diff(want, used("lockstep-state-07", data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s := &shard{stored: data, taken: newTally()}
	s.measureAll()
	if s.taken.all != want.All {
		t.Errorf("the controller measures %d, and a command %d", s.taken.all, want.All)
	}
	if namespace, all := Room(); namespace >= all || namespace <= 0 {
		t.Errorf("one namespace can have %d of %d", namespace, all)
	}
}
