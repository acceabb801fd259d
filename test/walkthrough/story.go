package walkthrough

import (
	"fmt"
	"strings"
)

// Release is the application of the walk-through: three pods, a canary of one that waits for
// a promotion, and one ConfigMap. The attach Job needs an image, which only a real node pulls.
func Release(color, more string) string {
	if !strings.Contains(more, "configmapAttacher:") {
		more += "\nconfigmapAttacher: {repository: registry.example/lockstep}\n"
	}
	return fmt.Sprintf(`
appName: demo
replicas: 3
rollout: {preDefinedStrategy: manual-canary-1-pod}
configmaps:
  cm:
    kv_data: {color: %s}
%s`, color, more)
}

// WalkThrough plays the life of revisioned ConfigMaps step by step. deploy deploys a release
// of a color and attaches its ConfigMap. look is called whenever pods with a color should
// run, to check their content.
func (w *World) WalkThrough(deploy func(color string), look func(configMap, color string)) {
	w.T.Helper()
	// 1. Deploy: a ReplicaSet, three pods, and a ConfigMap that the ReplicaSet owns.
	deploy("red")
	red := w.ConfigMapOf("red")
	rsRed := w.AwaitReplicaSet(red)
	w.AwaitOwners(map[string][]string{red: {rsRed.Name}})
	w.AwaitPods(map[string]int{red: 3})
	look(red, "red")
	if path := w.Pods(red)[0].Spec.Containers[0].VolumeMounts[0].MountPath; path != "/etc/kubernetes/configmaps" {
		w.T.Errorf("mounted at %s", path)
	}

	// 2. Change: a second ReplicaSet with one pod, and its own ConfigMap.
	deploy("blue")
	blue := w.ConfigMapOf("blue")
	rsBlue := w.AwaitReplicaSet(blue)
	w.AwaitPause()
	w.AwaitOwners(map[string][]string{red: {rsRed.Name}, blue: {rsBlue.Name}})
	w.AwaitPods(map[string]int{red: 2, blue: 1})
	look(blue, "blue")

	// A node goes away: the replacement of an old pod mounts the old ConfigMap.
	victim := w.Pods(red)[0]
	w.Delete(&victim)
	w.AwaitPods(map[string]int{red: 2, blue: 1})
	for _, pod := range w.Pods(red) {
		if pod.Name == victim.Name {
			w.T.Errorf("pod %s was not replaced", pod.Name)
		}
	}
	look(red, "red")

	// 3. Promote.
	w.Promote()
	w.AwaitPods(map[string]int{red: 0, blue: 3})

	// 4. and 5. Change again, promote again.
	deploy("green")
	green := w.ConfigMapOf("green")
	rsGreen := w.AwaitReplicaSet(green)
	w.Promote()
	w.AwaitPods(map[string]int{red: 0, blue: 0, green: 3})
	w.AwaitOwners(map[string][]string{red: {rsRed.Name}, blue: {rsBlue.Name}, green: {rsGreen.Name}})

	// 6. Deleting the old ReplicaSets deletes exactly their ConfigMaps.
	w.Delete(&rsRed)
	w.Delete(&rsBlue)
	w.AwaitOwners(map[string][]string{green: {rsGreen.Name}})
	w.AwaitPods(map[string]int{green: 3})
	look(green, "green")
}
