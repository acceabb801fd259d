package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// shape changes the greedy tenant's objects: the i-th Deployment, the i-th ConfigMap, and the
// n-th old revision of each Deployment. A nil function changes nothing.
type shape struct {
	app      func(i int, d *appsv1.Deployment)
	config   func(i int, c *corev1.ConfigMap)
	revision func(n int, r *appsv1.ReplicaSet)
}

// fat is nearly as much as an object can have.
const fat = 1_200_000

// shapedAttacks put as much into single fields as the API server accepts.
func shapedAttacks() []attack {
	return slices.Concat(shapedApps(), shapedConfigs(), shapedRevisions())
}

func shapedApps() []attack {
	return []attack{
		{
			name: "references", about: "1,700 names in envFrom each, without an annotation", apps: 250, memory: true,
			shape: shape{app: func(i int, d *appsv1.Deployment) {
				c := &d.Spec.Template.Spec.Containers[0]
				for n := range 1700 {
					c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: short(n*250 + i)}}})
				}
			}},
		},
		{
			name: "listed", about: "512 names in the annotation each", apps: 800, memory: true,
			shape: shape{app: func(i int, d *appsv1.Deployment) {
				list := make([]string, 512)
				for n := range list {
					list[n] = "configmap/" + short(n*800+i)
				}
				d.Annotations[settings.Reload] = strings.Join(list, ",")
			}},
		},
		{
			name: "distinct", about: "64 patterns each that are slow to match, all different", apps: 600, configs: 600, letters: 240,
			shape: shape{app: func(i int, d *appsv1.Deployment) {
				d.Annotations[settings.Reload] = patterns(func(n int) string {
					return fmt.Sprintf("configmap/a%s*%s%02d%04d*", strings.Repeat("*a", settings.MaxStarsEach-2), strings.Repeat("a", 120), n, i)
				})
			}},
		},
		{
			name: "moved-by", about: "an annotation of 250 KB that Lockstep itself writes", apps: 800, memory: true,
			shape: shape{app: func(_ int, d *appsv1.Deployment) {
				d.Annotations["lockstep.dev/moved-by"] = strings.Repeat("a", 250_000)
			}},
		},
		{
			name: "owner", about: "an owner with a name of 1.2 MB each", apps: 200, memory: true,
			shape: shape{app: func(_ int, d *appsv1.Deployment) {
				d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Thing", Name: strings.Repeat("a", fat), UID: "x", Controller: new(true)}}
			}},
		},
		{
			name: "images", about: "128 images each of a registry that accepts requests and doesn't answer", apps: 150,
			flags: withImages + "--plain-http-registry {registry}",
			shape: shape{app: func(i int, d *appsv1.Deployment) {
				spec := &d.Spec.Template.Spec
				for n := range 128 {
					c := *spec.Containers[0].DeepCopy()
					c.Name = fmt.Sprint("c", n)
					spec.Containers = append(spec.Containers, c)
					d.Annotations["image.lockstep.dev/"+c.Name] = fmt.Sprintf("{registry}/silent/app:v%d-%d", i, n)
				}
			}},
		},
	}
}

func shapedConfigs() []attack {
	return []attack{
		{
			name: "owned", about: "an owner with a UID of 1.2 MB each", configs: 200, flags: "--revisions", memory: true,
			shape: shape{config: func(_ int, c *corev1.ConfigMap) {
				c.Labels = map[string]string{"lockstep.dev/revisioned": "true"}
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Thing", Name: "x", UID: types.UID(strings.Repeat("a", fat))}}
			}},
		},
		{
			name: "keys", about: "1,700 keys each", configs: 2500, memory: true,
			shape: shape{config: func(i int, c *corev1.ConfigMap) {
				for n := range 1700 {
					c.Data[short(n+i*1700)] = ""
				}
			}},
		},
		{
			name: "settings", about: "180 KB of settings each", configs: 1300, memory: true,
			shape: shape{config: func(_ int, c *corev1.ConfigMap) {
				c.Annotations = map[string]string{settings.Reload: strings.Repeat("a", 40_000)}
				for n := range 130 {
					c.Annotations[fmt.Sprint("image.lockstep.dev/c", n)] = strings.Repeat("a", 1024)
				}
				for n := range 16 {
					c.Annotations[fmt.Sprint("lockstep.dev/x", n)] = strings.Repeat("a", 1024)
				}
			}},
		},
	}
}

func shapedRevisions() []attack {
	return []attack{
		{
			name: "shown", about: "20 old revisions each that show 64 KB; one change while the program is down",
			apps: 32, configs: 1, onApps: reload("configmap/*"), revisions: 20, down: true, memory: true,
			shape: shape{revision: func(_ int, r *appsv1.ReplicaSet) {
				var shown strings.Builder
				for i := 0; shown.Len() < 65_400; i++ {
					fmt.Fprintf(&shown, "image/%03x~,", i)
				}
				r.Spec.Template.Annotations = map[string]string{"lockstep.dev/inputs": shown.String()}
			}},
		},
		{
			name: "growing", about: "36 small old revisions, then 264 of 900 KB; one change while the program is down",
			apps: 1, configs: 1, onApps: reload("configmap/*"), revisions: 300, down: true, memory: true,
			shape: shape{
				app: func(_ int, d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = new(int32(2000)) },
				revision: func(n int, r *appsv1.ReplicaSet) {
					r.Name = fmt.Sprintf("app-0-%04d", n) // The list is in the order of names.
					if n >= 36 {
						c := &r.Spec.Template.Spec.Containers[0]
						c.Env = append(c.Env, corev1.EnvVar{Name: "FAT", Value: strings.Repeat("x", 900_000)})
					}
				},
			},
		},
	}
}

// short is a name that costs few bytes.
func short(n int) string { return strconv.FormatInt(int64(n), 36) }
