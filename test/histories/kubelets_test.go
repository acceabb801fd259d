package histories_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// kubelets makes the pods of the workload, as its controller and kubelets do: it creates those of
// its current revision, starts them, and deletes the others.
type kubelets struct {
	*server
	*agenda

	kind  kube.Kind
	loads *histories.Loads
	// noted is called when the numbers of pods may have changed.
	noted  func()
	queued bool
	made   int
	// running is the hash of the template that pods of a Deployment are made from.
	running string
}

// target is a revision that the workload wants pods of.
type target struct {
	hash, label, name string
	owner             metav1.OwnerReference
	template          *corev1.PodTemplateSpec
	wanted            int
}

// see is told of each write.
func (k *kubelets) see(string, client.Object, client.Object) { k.soonOnce(&k.queued, k.sync) }

// workload is the workload with its own template, nil when there is none.
func (k *kubelets) workload() client.Object {
	o, ok := k.objects[nameIn(k.kind.NewObject(), namespace, testkit.Web)]
	if !ok {
		return nil
	}
	return o
}

// pods are all pods, the oldest first.
func (s *server) pods() []*corev1.Pod {
	var all []*corev1.Pod
	for _, o := range s.objects {
		if pod, ok := o.(*corev1.Pod); ok {
			all = append(all, pod)
		}
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return all
}

func hasStarted(pod *corev1.Pod) bool { return len(pod.Status.ContainerStatuses) > 0 }

// hashIn is the hash of the revision of a pod.
func hashIn(pod *corev1.Pod) string {
	hash := cmp.Or(pod.Labels[hashLabel], pod.Labels[canaryHashLabel], pod.Labels[appsv1.ControllerRevisionHashLabelKey])
	return hash[strings.LastIndex(hash, "-")+1:]
}

// count counts the pods of a revision, those that have started, and all.
func (k *kubelets) count(hash string) (of, started, all int32) {
	for _, pod := range k.pods() {
		all++
		if hasStarted(pod) {
			started++
		}
		if hashIn(pod) == hash {
			of++
		}
	}
	return of, started, all
}

// targets are the revisions that the workload wants pods of, none while its controller hasn't
// acted.
func (k *kubelets) targets() ([]target, bool) {
	switch o := k.workload().(type) {
	case *appsv1.Deployment:
		if hash := hashOf(o); !o.Spec.Paused && o.Status.ObservedGeneration == o.Generation {
			k.running = hash
		}
		return k.ofReplicaSets(o, hashLabel, map[string]int{k.running: int(*o.Spec.Replicas)}), true
	case *appsv1.StatefulSet, *appsv1.DaemonSet:
		return k.ofRevision(o), true
	case *unstructured.Unstructured:
		status, wanted := statusOf(o), int(*asDeployment(o).Spec.Replicas)
		all := map[string]int{status.StableRS: wanted}
		if !status.Abort && !asDeployment(o).Spec.Paused || status.CurrentPodHash == status.StableRS {
			all[status.CurrentPodHash] = wanted
		}
		return k.ofReplicaSets(asDeployment(o), canaryHashLabel, all), status.CurrentPodHash != ""
	}
	return nil, false
}

func (k *kubelets) ofReplicaSets(d *appsv1.Deployment, label string, wanted map[string]int) []target {
	var all []target
	for _, rs := range k.setsOf(d) {
		hash := rs.Labels[label]
		if n, ok := wanted[hash]; ok {
			owner := *metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
			all = append(all, target{hash, label, hash, owner, &rs.Spec.Template, n})
		}
	}
	return all
}

func (k *kubelets) ofRevision(o client.Object) []target {
	revisions, d := k.revisions(), asDeployment(o)
	if len(revisions) == 0 {
		return nil
	}
	name := revisions[0].Name
	hash := name[strings.LastIndex(name, "-")+1:]
	label := map[bool]string{true: name, false: hash}[k.kind.Kind == kube.StatefulSet().Kind]
	owner := *metav1.NewControllerRef(o, k.kind.GroupVersionKind)
	return []target{{hash, appsv1.ControllerRevisionHashLabelKey, label, owner, &storedIn(revisions[0]).Spec.Template, int(*d.Spec.Replicas)}}
}

// sync makes and deletes one pod after the other.
func (k *kubelets) sync() {
	targets, known := k.targets()
	if !known || k.kind.RestartsByItself {
		return
	}
	before := k.version
	if len(targets) == 1 && targets[0].label == appsv1.ControllerRevisionHashLabelKey {
		k.oneByOne(targets[0])
	} else {
		k.surge(targets)
	}
	if k.version != before {
		k.noted()
	}
}

// surge makes all pods that are wanted, and deletes the others when they have started.
func (k *kubelets) surge(targets []target) {
	ready := true
	var others []*corev1.Pod
	have := map[string]int{}
	for _, pod := range k.pods() {
		i := slices.IndexFunc(targets, func(t target) bool { return t.hash == hashIn(pod) })
		if i < 0 {
			others = append(others, pod)
			continue
		}
		if have[targets[i].hash]++; have[targets[i].hash] > targets[i].wanted {
			k.delete(pod)
			continue
		}
		ready = ready && hasStarted(pod)
	}
	for _, t := range targets {
		for range t.wanted - have[t.hash] {
			ready = false
			k.create(t)
		}
	}
	if !ready {
		return
	}
	for _, pod := range others {
		k.delete(pod)
	}
}

// oneByOne replaces one pod when the others have started.
func (k *kubelets) oneByOne(t target) {
	all := k.pods()
	for i := t.wanted; i < len(all); i++ {
		k.delete(all[i])
	}
	all = all[:min(len(all), t.wanted)]
	if len(all) < t.wanted {
		k.create(t)
		return
	}
	old := slices.IndexFunc(all, func(pod *corev1.Pod) bool { return hashIn(pod) != t.hash })
	waits := slices.IndexFunc(all, func(pod *corev1.Pod) bool { return !hasStarted(pod) && hashIn(pod) == t.hash })
	if old >= 0 && waits < 0 && asDeployment(k.workload()).Annotations[byHand] != "true" {
		k.delete(all[old])
	}
}

func (k *kubelets) create(t target) {
	k.made++
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: fmt.Sprintf("%s-%s-%d", testkit.Web, t.hash, k.made), OwnerReferences: []metav1.OwnerReference{t.owner},
		Labels: map[string]string{"app": testkit.Web, t.label: t.name}, Annotations: t.template.Annotations,
	}, Spec: t.template.Spec}
	k.must(k.as("kube-controller-manager").Create(nil, pod)) //nolint:staticcheck // the small server needs no context
	all, _ := placesOf(t.template)
	k.loads.Create(pod.Name, t.hash, all)
	k.after(k.soon(), func() { k.accept(pod.Name) })
}

func (k *kubelets) delete(pod *corev1.Pod) {
	k.must(k.as("kube-controller-manager").Delete(nil, pod)) //nolint:staticcheck // the small server needs no context
}

func (k *kubelets) must(err error) {
	if err != nil {
		panic(err)
	}
}

// update writes the status of a pod, unless it is gone.
func (k *kubelets) update(name string, change func(*corev1.PodStatus)) {
	stored, ok := k.objects[nameIn(&corev1.Pod{}, namespace, name)].(*corev1.Pod)
	if !ok {
		return
	}
	pod := stored.DeepCopy()
	change(&pod.Status)
	k.store("kubelet", stored, pod)
}

func (k *kubelets) exists(name string) bool {
	_, ok := k.objects[nameIn(&corev1.Pod{}, namespace, name)]
	return ok
}

// accept: a kubelet begins with a pod. It mounts volumes, runs the init containers, and then
// starts the container, each when what it needs exists. A container starts a moment after its
// environment was read.
func (k *kubelets) accept(name string) {
	k.update(name, func(s *corev1.PodStatus) { s.StartTime = new(now()) })
	k.load(name, []histories.Place{histories.Volume, histories.Projected}, func() {
		k.load(name, []histories.Place{histories.Init}, func() {
			k.update(name, func(s *corev1.PodStatus) {
				s.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: now(), FinishedAt: now()}}}}
			})
			k.load(name, []histories.Place{histories.Env, histories.EnvFrom}, func() { k.run(name) })
		})
	})
}

// load reads places a little later, and again and again until that is possible.
func (k *kubelets) load(name string, places []histories.Place, then func()) {
	k.after(k.soon()*3, func() {
		switch {
		case !k.exists(name):
		case k.loads.Load(name, places...):
			k.after(k.soon(), func() {
				if k.exists(name) {
					then()
				}
			})
		default:
			k.after(time.Second, func() { k.load(name, places, then) })
		}
	})
}

// run: the container of a pod has started.
func (k *kubelets) run(name string) {
	k.loads.Run(name)
	k.update(name, func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now()}}}}
	})
	k.noted()
}

// heard is told of each write, and tells the judge what was written.
func (k *kubelets) heard(writer string, old, now client.Object) {
	o := now
	if o == nil {
		o = old
	}
	switch o := o.(type) {
	case *corev1.ConfigMap:
		k.loads.Write("configmap/"+o.Name, dataOf(now))
	case *corev1.Secret:
		k.loads.Write("secret/"+o.Name, dataOf(now))
	case *corev1.Pod:
		if now == nil {
			k.loads.Delete(o.Name)
		}
	case *appsv1.ReplicaSet, *appsv1.ControllerRevision:
	default:
		if d := k.joined(); d != nil {
			k.loads.Workload(followedOf(k.kind, d, isLent(k.workload())), writer == kube.FieldManager)
		}
	}
}
