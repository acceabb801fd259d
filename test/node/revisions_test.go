package node_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
	"github.com/lockstep-dev/lockstep/test/walkthrough"
)

// release is that of the walk-through, with an application that prints its file
// and with the attach Job in an image of the lab: its account, role and hooks are
// the chart's own.
func release(color string) string {
	return walkthrough.Release(color, `
image: {repository: lab.local/show, tag: "1", imagePullPolicy: Never}
command: [/lab-node, show, NOTHING, /etc/kubernetes/configmaps/color]
terminationGracePeriodSeconds: 3
podSecurityContext: {runAsUser: 65532} # the image names no user
configmapAttacher: {repository: lab.local/lockstep, tag: "1", imagePullPolicy: Never}
`)
}

// podsKeepTheConfigurationOfTheirRevision plays the walk-through with real pods:
// the file that is read inside is that of the pod's own revision, also in an old
// pod's replacement. The ConfigMaps are attached by the Job that Helm runs as a
// hook, in a pod, with the permissions that the chart gives it.
func podsKeepTheConfigurationOfTheirRevision(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := walkthrough.NewWorld(t, cluster)
	w.AwaitRolloutKind()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	logs := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(w.Namespace)
	look := func(configMap, color string) {
		want := "env \nfile " + color + "\n"
		for _, p := range w.Pods(configMap) {
			labtest.Eventually(t, testkit.Patience, func() (bool, string) {
				said, err := logs.GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
				return err == nil && string(said) == want, fmt.Sprintf("pod %s has read %q (%v), want %q", p.Name, said, err, want)
			})
		}
	}
	w.WalkThrough(func(color string) { w.Upgrade(release(color)) }, look)
}

// imageThatRunsAsRoot: with the chart's defaults the kubelet doesn't start it; "lockstep doctor" names the pod and
// the values, and with these values it runs.
func imageThatRunsAsRoot(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := walkthrough.NewWorld(t, cluster)
	values := release("red") + "revisions: {attach: controller}\nworkload: {kind: Deployment}\n"
	w.Upgrade(strings.Replace(values, "podSecurityContext: {runAsUser: 65532}", "", 1))
	red := w.ConfigMapOf("red")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		out, _, _ := labtest.RunCommand(t, labtest.Command{Path: w.Lockstep, Args: []string{"doctor", "-n", w.Namespace}, Env: []string{"KUBECONFIG=" + w.Kubeconfig}})
		return strings.Contains(out, " in namespace "+w.Namespace+": container demo") && strings.Contains(out, "set podSecurityContext and securityContext to null"), out
	})
	w.Upgrade(strings.Replace(values, "podSecurityContext: {runAsUser: 65532}", "podSecurityContext: null\nsecurityContext: null", 1))
	w.AwaitPods(map[string]int{red: 3})
}
