// Package installation reads how a controller is installed: the arguments of its Deployment.
package installation

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// Configured is the configuration in a controller's arguments.
type Configured struct {
	// Problem explains why the program would not start with them, empty when it would.
	Problem     string
	Permissions func(own string) []access.Permission
	Kinds       []kube.Kind
	Words       settings.Vocabulary
	// Watched are the configured namespaces, if any. Selector selects among all namespaces by
	// label; nil without one.
	Watched  []string
	Selector labels.Selector
	Own
	// Reload and Images are the followed inputs; Pods is whether it evicts and refreshes.
	Reload, Images, Pods bool
	PlainHTTP            []string
	ProbePort            string
	Pace
}

// Own are the controller's own objects and files.
type Own struct {
	// Lease is that of the leader, empty without leader election. State is the name prefix of
	// the record's ConfigMaps, Key names the Secret with the installation key.
	Lease, State, Key string
	// NotifyFile has the notification targets, empty for none.
	NotifyFile string
}

// Pace is how fast the controller delivers a change.
type Pace struct {
	// Ramp is true when a change reaches few workloads first, and AtMost is how many get it at
	// the same time, zero for any number.
	Ramp   bool
	AtMost int
	// StopAfter is how many workloads have to fail with a version until it is stopped, zero for
	// never.
	StopAfter int
	// Shared are the sources whose change is one change in all namespaces.
	Shared []input.ID
	// Window is the maintenance window of workloads without one of their own.
	Window string
}

// Watches reports whether the controller watches a namespace that has these labels.
func (c Configured) Watches(namespace string, has labels.Set) bool {
	if len(c.Watched) > 0 {
		return slices.Contains(c.Watched, namespace)
	}
	return c.Selector == nil || c.Selector.Matches(has)
}

// Understand reads the program's arguments, without its own name, and its container's
// environment. It is false when they aren't those of a controller.
type Understand func(arguments []string, variable func(string) (string, bool)) (Configured, bool)

// Found is the Deployment of a controller.
type Found struct {
	*appsv1.Deployment
	Configured
}

// IsActive reports whether the Deployment should have pods.
func (f Found) IsActive() bool { return kube.Deployment().Replicas(f.Deployment) > 0 }

// Owns reports whether a pod of that name belongs to the Deployment: its name starts with those
// of the Deployment and the ReplicaSet.
func (f Found) Owns(pod string) bool {
	rest, ok := strings.CutPrefix(pod, f.Name+"-")
	return ok && strings.Count(rest, "-") == 1
}

// Find finds the Deployments of controllers in a namespace. Leftover ones without replicas come
// last.
func (u Understand) Find(ctx context.Context, c client.Reader, namespace string) ([]Found, error) {
	var all []Found
	for o, err := range pages.Items(ctx, c, &appsv1.DeploymentList{}, client.InNamespace(namespace)) {
		if err != nil {
			return nil, fmt.Errorf("list deployments in %s: %w", namespace, err)
		}
		d, _ := o.(*appsv1.Deployment)
		if configured, ours := u.Of(d); ours {
			all = append(all, Found{d.DeepCopy(), configured})
		}
	}
	idle := slices.DeleteFunc(slices.Clone(all), Found.IsActive)
	return append(slices.DeleteFunc(all, func(f Found) bool { return !f.IsActive() }), idle...), nil
}

// Leading are the Deployments whose flags count: that of the leading pod, or, without a leader,
// those that should have pods. The flags of a leader that runs in a terminal are unknown.
func Leading(found []Found, leader access.Leader, now time.Time) []Found {
	return slices.DeleteFunc(slices.Clone(found), func(f Found) bool {
		if f.Lease != "" && leader.Leads(now) {
			return !f.Owns(leader.Host())
		}
		return !f.IsActive() && found[0].IsActive()
	})
}

// Of is the configuration of a Deployment's controller, false without one.
func (u Understand) Of(d *appsv1.Deployment) (Configured, bool) {
	for _, container := range d.Spec.Template.Spec.Containers {
		words := wordsOf(container, d.Namespace)
		if len(container.Command) > 0 {
			words = words[1:]
		}
		if !isOurs(d, container) {
			continue
		}
		if configured, ours := u(words, variablesOf(container, d.Namespace)); ours {
			return configured, true
		}
	}
	return Configured{}, false
}

// program is Lockstep's name: in a command, in its image name, or in its pods' label.
const program = "lockstep"

// isOurs reports whether a container runs Lockstep. Other programs have a command "controller"
// too.
func isOurs(d *appsv1.Deployment, c corev1.Container) bool {
	if len(c.Command) > 0 {
		return path.Base(c.Command[0]) == program
	}
	if d.Spec.Template.Labels["app.kubernetes.io/name"] == program {
		return true
	}
	ref, err := tagspec.ParseReference(c.Image)
	return err == nil && path.Base(ref.Repository.Path) == program
}

// wordsOf are the arguments of a container, with Kubernetes variable references expanded.
func wordsOf(c corev1.Container, namespace string) []string {
	variable := variablesOf(c, namespace)
	words := slices.Concat(c.Command, c.Args)
	for i := range words {
		words[i] = reference.ReplaceAllStringFunc(words[i], func(text string) string {
			if value, known := variable(text[2 : len(text)-1]); known {
				return value
			}
			return text
		})
	}
	return words
}

// reference is a variable reference that Kubernetes expands in arguments.
var reference = regexp.MustCompile(`\$\([A-Za-z_][A-Za-z0-9_.-]*\)`)

// variablesOf looks up the environment of a container, as far as the template contains the
// values.
func variablesOf(c corev1.Container, namespace string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, e := range c.Env {
			switch from := e.ValueFrom; {
			case e.Name != name:
			case from == nil:
				return e.Value, true
			case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
				return namespace, true
			}
		}
		return "", false
	}
}
