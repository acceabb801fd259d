package reloader_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestBesideNative: the native controller reads the same annotations on the same cluster. The program
// with the shorter quiet window delivers a change, and the other one reports that it leaves it.
func TestBesideNative(t *testing.T) {
	t.Parallel()
	for name, quiet := range map[string]struct{ ours, native string }{
		"ReloaderIsFaster": {"100ms", "4s"},
		"NativeIsFaster":   {"4s", "100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, values{})
			r := s.namespace(t, "beside")
			source := r.configMap(t, "c", "0")
			o := r.add(t, app{notes: notes(auto, "true")})
			w := &testkit.World{Cluster: s.cluster, Client: s.client, Namespace: r.name, Own: labtest.Namespace(t, s.cluster)}
			native := inprocess.StartReady(t, w, "--read-annotations", "stakater", "--quiet", quiet.native)
			w.AwaitRecord(t, o.GetName(), "configmap/c")
			p := r.run(t, "--quiet="+quiet.ours)
			r.set(t, source, "1")
			// On a slow machine, the other one can be faster.
			labtest.Eventually(t, testkit.Patience, func() (bool, string) {
				left := strings.Contains(native.Stderr(), "reason=DeliveredByRollout") || strings.Contains(p.log(), "reason=LeftToLockstep")
				return left, fmt.Sprintf("neither leaves the change to the other:\n%s\n%s", native.Stderr(), p.log())
			})
			r.read(t, o)
			if got := o.GetGeneration() - 1; got != 1 {
				t.Errorf("the change was rolled out %d times:\n%s\n%s", got, native.Stderr(), p.log())
			}
		})
	}
}
