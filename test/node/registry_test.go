package node_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// podPullsFromTheRegistry: an image that only the lab's registry has, pulled anew.
func podPullsFromTheRegistry(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	pushed := showOn(cluster)
	pushed.Name = labtest.RegistryName + "/pulled/show:1"
	// Another user makes it another image: the kubelet would otherwise remember that
	// the one which other stories were given has been pulled, and refuse it to them.
	pushed.User = "65532"
	if err := cluster.PushImage(t.Context(), pushed); err != nil {
		t.Fatal(err)
	}
	app := application(nil)
	container := &app.Spec.Template.Spec.Containers[0]
	container.Image, container.ImagePullPolicy = pushed.Name, corev1.PullAlways
	w := testkit.NewWorldOn(t, cluster)
	w.Create(t, config("hello", "one"), app)
	awaitOutput(t, w, "env hello", "file one")
}
