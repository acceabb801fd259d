package reload_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// reload writes what Stakater Reloader writes for a ConfigMap.
func (s *stage) reload(t testing.TB, ref, configMap, hash string) {
	t.Helper()
	o := blank(t, ref)
	o.SetNamespace(s.Namespace)
	variable := "STAKATER_" + strings.ToUpper(configMap) + "_CONFIGMAP"
	patch := `{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"` + variable + `","value":"` + hash + `"}]}]}}}}`
	if err := s.Client.Patch(t.Context(), o, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("Reloader")); err != nil {
		t.Fatalf("write %s as Reloader: %v", ref, err)
	}
}

// TestBesideStakaterReloader: both programs read the same annotations. A change that Reloader
// delivers first isn't delivered again, and the log names the writer.
func TestBesideStakaterReloader(t *testing.T) {
	t.Parallel()
	const theirs = `reloader.stakater.com/auto: "true", deployment.reloader.stakater.com/pause-period: 5m`
	s := newStage(t, configMap("app", "key: one")+configMap("own", "key: one")+
		deployment("web", theirs+", "+settings.Quiet+": 1h", uses("configmap/app"))+
		deployment("alone", theirs, uses("configmap/own")))
	c := s.run(t, "--read-annotations", "stakater")
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.awaitKnown(t, deploy, "alone", "configmap/own")
	s.AwaitEvent(t, "alone", string(input.InvalidAnnotation), "pause-period: Lockstep doesn't pause Deployments")

	before := s.remembered(t, deploy, "web")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.reload(t, web, "app", "da39a3ee5e6b4b0d3255bfef95601890afd80709")
	s.awaitSettled(t, "web", before)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		const line = `reason=DeliveredByRollout message="configmap/app; the pod template was last written by Reloader"`
		return strings.Contains(c.Stderr(), line), "the log doesn't name the writer"
	})
	s.checkRollouts(t, "Reloader delivered it", 1, web)

	s.change(t, "configmap/own", "{data: {key: two}}")
	s.awaitRollouts(t, "deployment/alone", 1)
	s.checkRollouts(t, "once", 1, "deployment/alone", web)
}
