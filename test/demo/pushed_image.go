package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

// pushedImage: an image is an input too. A pushed image and a changed ConfigMap make one
// rollout.
func pushedImage(ctx context.Context, s *story) error {
	before, err := s.rolloutsSoFar(ctx)
	if err != nil {
		return err
	}
	if err := s.say(ctx, "An image is an input too. Here is a registry, on this machine, and an annotation that asks for the newest tag:"); err != nil {
		return err
	}
	if err := s.openRegistry(ctx); err != nil {
		return err
	}
	if err := s.push(ctx, "1.9"); err != nil {
		return err
	}
	spec := s.registry.Address + "/web:1.*"
	s.show(settings.ImagePrefix + "web: " + spec)
	if err := s.firstPin(ctx, spec); err != nil {
		return err
	}
	if err := s.rollouts(ctx, before+1, "the container names the newest tag, by its digest"); err != nil {
		return err
	}
	if err := s.showImage(ctx); err != nil {
		return err
	}
	if err := s.say(ctx, "Now a new image is pushed, and a ConfigMap changes. 1.10 comes after 1.9, and both changes are one rollout:"); err != nil {
		return err
	}
	if err := s.pushAndChange(ctx); err != nil {
		return err
	}
	if err := s.rollouts(ctx, before+2, "an image and a ConfigMap, one rollout"); err != nil {
		return err
	}
	return s.showImage(ctx)
}

// firstPin requests the image, with a Lockstep that follows images.
func (s *story) firstPin(ctx context.Context, spec string) error {
	if err := s.step(ctx, "start lockstep with --images", func(ctx context.Context) error {
		if err := s.stopLockstep(); err != nil {
			return err
		}
		s.quiet = s.gather
		return s.startLockstep(ctx)
	}); err != nil {
		return err
	}
	mark := s.log.mark()
	if err := s.step(ctx, "annotate deployment/web", func(ctx context.Context) error {
		return s.patch(ctx, &appsv1.Deployment{}, deployment, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, settings.ImagePrefix+"web", spec))
	}); err != nil {
		return err
	}
	if err := s.decided(ctx, mark, "roll"); err != nil {
		return err
	}
	return s.settled(ctx)
}

func (s *story) pushAndChange(ctx context.Context) error {
	mark := s.log.mark()
	if err := s.push(ctx, "1.10"); err != nil {
		return err
	}
	if err := s.step(ctx, "change configmap/web-settings: greeting good night -> hello again", func(ctx context.Context) error {
		return s.patch(ctx, &corev1.ConfigMap{}, "web-settings", `{"data":{"greeting":"hello again"}}`)
	}); err != nil {
		return err
	}
	return s.rolledOnce(ctx, mark, "image/web", "configmap/web-settings")
}

// openRegistry starts the story's own registry, and lets the next Lockstep query it.
func (s *story) openRegistry(ctx context.Context) error {
	dir := filepath.Join(s.dir, "registry")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var err error
	if s.registry, err = registrylab.Start(ctx, registrylab.Options{Dir: dir, Public: true, Progress: s.printer}); err != nil {
		return fmt.Errorf("start a registry: %w", err)
	}
	authority := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(authority, s.registry.CA, 0o600); err != nil {
		return err
	}
	s.flags = []string{"--images", "--image-interval", "1s", "--cloud-identity=false", "--registry-ca", s.registry.Address + "=" + authority}
	return nil
}

func (s *story) push(ctx context.Context, tag string) error {
	return s.step(ctx, "push "+s.registry.Address+"/web:"+tag, func(ctx context.Context) error {
		_, err := s.registry.PushIndex(ctx, "web", tag, tag)
		return err
	})
}

// showImage prints the container's image.
func (s *story) showImage(ctx context.Context) error {
	d := &appsv1.Deployment{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: deployment}, d); err != nil {
		return err
	}
	s.show("image: " + d.Spec.Template.Spec.Containers[0].Image)
	return nil
}

// closeRegistry ends the registry, if there is one.
func (st *stage) closeRegistry() error {
	if st.registry == nil {
		return nil
	}
	if err := st.registry.Stop(); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(st.dir, "registry"))
}
