package ownership

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// BenchmarkOwnershipOfALargeCluster fills a Watch with 50,000 ReplicaSets, ten
// of each of 5,000 workloads, and 50,000 revisioned ConfigMaps, one for each
// ReplicaSet, and reports what stays on the heap. It needs no control plane:
//
//	go test -run NONE -bench Ownership -benchtime 1x ./internal/adapter/ownership
func BenchmarkOwnershipOfALargeCluster(b *testing.B) {
	const objects = 50_000
	for b.Loop() {
		before := heap()
		cache := cluster.NewCache(nil, cluster.CacheOptions{Kinds: kube.Kinds(), Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {}})
		w := New(cache, Options{Now: time.Now, Report: func(mirror.Sync) {}})
		all, _ := w.areas.Of(corev1.NamespaceAll)
		for i := range objects {
			add(b, all.revisions["ReplicaSet"], manyReplicaSets(b, i))
			add(b, all.objects[0].Mirror, manyConfigMaps(i))
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "heap-MiB")
		b.ReportMetric(float64(heap()-before)/objects, "heap-B/revision")
		if users := w.Users(ObjectKey{Namespace: "namespace-7", Source: input.ConfigMap(manyName(7))}); len(users) != 1 {
			b.Fatalf("a ConfigMap has %d users, want 1", len(users))
		}
		runtime.KeepAlive(w)
	}
}

func add[T mirror.Slim[T]](b *testing.B, m *mirror.Mirror[T], object any) {
	b.Helper()
	if err := m.Add(object); err != nil {
		b.Fatal(err)
	}
}

// heap is what is in use after everything unused was collected.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func manyName(i int) string { return fmt.Sprintf("application-%d-settings-3fa9c1d2e4", i) }

// manyMeta has names, labels and UIDs as long as real ones.
func manyMeta(i int, kind string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: fmt.Sprintf("namespace-%d", i%100), Name: fmt.Sprintf("application-%d-%s", i, kind),
		UID: types.UID(fmt.Sprintf("%08d-b58c-4c25-b097-0f170ef59ba1", i)), ResourceVersion: fmt.Sprint(1_000_000 + i),
	}
}

// manyReplicaSets comes over the wire, so that it shares no memory with others.
func manyReplicaSets(b *testing.B, i int) *appsv1.ReplicaSet {
	b.Helper()
	yes := true
	rs := &appsv1.ReplicaSet{ObjectMeta: manyMeta(i, "76f5954475")}
	rs.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprintf("application-%d", i/10),
		UID: types.UID(fmt.Sprintf("%08d-cccc-4c25-b097-0f170ef59ba1", i/10)), Controller: &yes,
	}}
	rs.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "application", Image: "registry.example.org/application:1.0.0", Env: make([]corev1.EnvVar, 20)}},
		Volumes: []corev1.Volume{
			{Name: "a", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: manyName(i)}}}},
			{Name: "b", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "database"}}},
		},
	}
	raw, err := rs.Marshal()
	read := &appsv1.ReplicaSet{}
	if err == nil {
		err = read.Unmarshal(raw)
	}
	if err != nil {
		b.Fatal(err)
	}
	return read
}

func manyConfigMaps(i int) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: manyMeta(i, "settings-3fa9c1d2e4")}
	m.Name = manyName(i)
	m.Labels = map[string]string{settings.Revisioned: "true", "app": "application"}
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", UID: manyMeta(i, "76f5954475").UID}}
	return m
}
