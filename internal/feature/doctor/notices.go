package doctor

import (
	"context"
	"fmt"
	"path"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func checkNotices(f Facts) Check {
	n := f.Controller.Notices
	c := ok(Notices, "")
	switch {
	case n.Wrong:
		return Check{Name: Notices, Result: Problem, Found: "the notification targets are invalid: " + n.Err.Error(), Do: "correct them; until then the controller keeps the previous targets"}
	case n.Err != nil:
		return unread(Notices, n.Err)
	case n.File == "":
		c.Found = "notifications are off"
	default:
		c.Found = counted(len(n.Targets.Targets), "target") + ": " + strings.Join(sortedKeys(n.Targets.Targets), ", ")
	}
	for _, namespace := range sortedKeys(n.Chosen) {
		problem := "notifications are off"
		if n.File != "" {
			problem = n.Targets.Problem(namespace, n.Chosen[namespace])
		}
		if problem != "" {
			c.Result, c.Do = Warning, "correct the annotation "+settings.Notify+", or allow the target for the namespace"
			c.Details = append(c.Details, fmt.Sprintf("namespace/%s: annotation %s: %q: %s", namespace, settings.Notify, n.Chosen[namespace], problem))
		}
	}
	c.Details = some(c.Details)
	return c
}

// readNotices reads the targets from the Secret that the Deployment mounts, and what namespaces
// choose.
func (f *Facts) readNotices(ctx context.Context, o Options, d *appsv1.Deployment, file string) {
	f.Controller.Notices.File = file
	if file == "" || d == nil {
		return
	}
	at, key, found := mountedSecret(d, file)
	if !found {
		f.Controller.Notices.Err = fmt.Errorf("the controller's pods don't mount a Secret for %s", file)
		return
	}
	secret := &corev1.Secret{}
	if err := o.Client.Get(ctx, at, secret); err != nil {
		f.Controller.Notices.Err = fmt.Errorf("read secret/%s in namespace %s: %w", at.Name, at.Namespace, err)
		return
	}
	text, has := secret.Data[key]
	if !has {
		f.Controller.Notices.Wrong, f.Controller.Notices.Err = true, fmt.Errorf("secret/%s has no key %s", at.Name, key)
		return
	}
	config, err := notice.Parse(text)
	f.Controller.Notices.Targets, f.Controller.Notices.Err, f.Controller.Notices.Wrong = config, err, err != nil
}

// mountedSecret is the Secret and the key that a container sees as a file.
func mountedSecret(d *appsv1.Deployment, file string) (at client.ObjectKey, key string, found bool) {
	spec := d.Spec.Template.Spec
	for _, c := range spec.Containers {
		for _, mount := range c.VolumeMounts {
			for _, volume := range spec.Volumes {
				if volume.Name == mount.Name && volume.Secret != nil && path.Clean(mount.MountPath) == path.Dir(file) {
					return client.ObjectKey{Namespace: d.Namespace, Name: volume.Secret.SecretName}, keyOf(volume.Secret.Items, path.Base(file)), true
				}
			}
		}
	}
	return client.ObjectKey{}, "", false
}

// keyOf is the key of a Secret that becomes a file.
func keyOf(items []corev1.KeyToPath, file string) string {
	for _, item := range items {
		if item.Path == file {
			return item.Key
		}
	}
	return file
}
