package images

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Pushed is an image in a registry.
type Pushed struct {
	Image
	// Reference includes the tag and the digest.
	Reference string
}

// Pusher pushes images to a registry, with the credentials of a keychain.
type Pusher struct {
	Target   Target
	Keychain authn.Keychain
	Progress Progress
}

// Check checks whether the registry accepts images at all, before anything is built.
func (p Pusher) Check(ctx context.Context) error {
	for _, image := range Table() {
		if err := p.check(ctx, image); err != nil {
			return p.refusal(image, err)
		}
	}
	return nil
}

// check checks one image. The library's check doesn't take a context: when the context ends,
// the check continues in the background.
func (p Pusher) check(ctx context.Context, image Image) error {
	answer := make(chan error, 1)
	go func() { answer <- remote.CheckPushPermission(p.Target.tag(image), p.Keychain, remote.DefaultTransport) }()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-answer:
		return err
	}
}

// Push uploads everything by digest and moves the tags after that, one after the other: each
// tag names either the old image or a complete new one, even when the push is interrupted.
// The error includes how many tags were moved.
func (p Pusher) Push(ctx context.Context, images []Built) ([]Pushed, error) {
	uploaded := map[string]name.Reference{}
	for _, image := range images {
		from, err := p.upload(ctx, image, uploaded[image.Program])
		if err != nil {
			return nil, fmt.Errorf("%w; no tag was moved", p.refusal(image.Image, err))
		}
		if uploaded[image.Program] == nil {
			uploaded[image.Program] = from
		}
	}
	return p.tag(ctx, images)
}

// tag moves the tags of images that are in the registry.
func (p Pusher) tag(ctx context.Context, images []Built) ([]Pushed, error) {
	step := p.Progress.Begin("tag")
	var all []Pushed
	for _, image := range images {
		tag := p.Target.tag(image.Image)
		step.Update(tag.Name())
		digest, err := image.Index.Digest()
		if err == nil {
			err = remote.Tag(tag, image.Index, p.options(ctx)...)
		}
		if err != nil {
			return nil, fmt.Errorf("%w; %d of %d tags were moved before that", p.refusal(image.Image, err), len(all), len(images))
		}
		all = append(all, Pushed{Image: image.Image, Reference: tag.Name() + "@" + digest.String()})
	}
	step.End(fmt.Sprintf("tagged %d images %s", len(all), p.Target.version))
	return all, nil
}

// upload sends an image and its SBOMs by digest. Layers of an earlier image of the same
// program are copied inside the registry.
func (p Pusher) upload(ctx context.Context, image Built, from name.Reference) (name.Reference, error) {
	repository := p.Target.repository(image.Image)
	step := p.Progress.Begin("push " + repository.Name())
	digest, err := image.Index.Digest()
	if err != nil {
		return nil, err
	}
	reference := repository.Digest(digest.String())
	index := image.Index
	if from != nil {
		index = mountable{index: image.Index, from: from}
	}
	if err := p.send(ctx, step, map[name.Reference]remote.Taggable{reference: index}); err != nil {
		return nil, err
	}
	// After their subjects, and one after the other: for a registry that does not list
	// attachments by itself, each upload extends a list.
	for _, attached := range image.SBOMs {
		digest, err := attached.Digest()
		if err != nil {
			return nil, err
		}
		if err := p.send(ctx, step, map[name.Reference]remote.Taggable{repository.Digest(digest.String()): attached}); err != nil {
			return nil, fmt.Errorf("attach the SBOM: %w", err)
		}
	}
	step.End("pushed " + reference.Name())
	return reference, nil
}

func (p Pusher) send(ctx context.Context, step Step, what map[name.Reference]remote.Taggable) error {
	updates, heard := make(chan v1.Update, 64), make(chan struct{})
	go func() {
		defer close(heard)
		for u := range updates {
			step.Update(fmt.Sprintf("%.1f of %.1f MB", megabytes(u.Complete), megabytes(u.Total)))
		}
	}()
	err := remote.MultiWrite(what, append(p.options(ctx), remote.WithProgress(updates))...)
	<-heard
	return err
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }

func (p Pusher) options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(p.Keychain)}
}

// index has another name than its interface, which has a method of that name.
type index = v1.ImageIndex

// mountable is an index whose layers exist in another repository of the registry.
type mountable struct {
	index
	from name.Reference
}

// Image finds a platform's image, with layers that name their repository.
func (m mountable) Image(digest v1.Hash) (v1.Image, error) {
	image, err := m.index.Image(digest)
	return mountableImage{Image: image, from: m.from}, err
}

type mountableImage struct {
	v1.Image
	from name.Reference
}

// Layers lists the layers, which name their repository.
func (m mountableImage) Layers() ([]v1.Layer, error) {
	layers, err := m.Image.Layers()
	if err != nil {
		return nil, err
	}
	known := make([]v1.Layer, 0, len(layers))
	for _, layer := range layers {
		known = append(known, &remote.MountableLayer{Layer: layer, Reference: m.from})
	}
	return known, nil
}
