package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	sourceURL = "https://github.com/lockstep-dev/lockstep"
	licence   = "Apache-2.0"
)

// Built is a finished image: one index over all platforms, and the list of its contents,
// attached to the index and to each platform's image.
type Built struct {
	Image
	Index v1.ImageIndex
	SBOMs []v1.Image
}

// Build compiles the programs in a temporary directory, and makes every image of the table.
func (s Source) Build(ctx context.Context, progress Progress) ([]Built, error) {
	dir, err := os.MkdirTemp("", "lockstep-images-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	byPlatform := make([]Compiled, len(s.platforms()))
	for i, platform := range s.platforms() {
		dir := filepath.Join(dir, strings.ReplaceAll(platform.String(), "/", "-"))
		if byPlatform[i], err = s.Compile(ctx, platform, Programs(), dir, progress); err != nil {
			return nil, err
		}
	}
	return s.Pack(ctx, byPlatform, progress)
}

// Pack makes every image of the table from compiled programs, in the order of the platforms.
func (s Source) Pack(ctx context.Context, byPlatform []Compiled, progress Progress) ([]Built, error) {
	roots, err := s.moduleVersion(ctx, rootsModule)
	if err != nil {
		return nil, err
	}
	zones, err := s.timeZones(ctx)
	if err != nil {
		return nil, err
	}
	return s.assemble(byPlatform, supplies{roots: roots, zones: zones}, progress)
}

// supplies come with the programs: the version of the certificate roots, and time zones.
type supplies struct {
	roots string
	zones []file
}

// parts are what the images of one program share.
type parts struct {
	layers [][]v1.Layer // by platform
	sbom   []byte
}

func (s Source) assemble(byPlatform []Compiled, from supplies, progress Progress) ([]Built, error) {
	step := progress.Begin("pack the images")
	base, err := newBaseLayer()
	if err != nil {
		return nil, err
	}
	shared := map[string]parts{}
	for _, program := range Programs() {
		step.Update(program)
		if shared[program], err = s.newParts(program, base, byPlatform, from); err != nil {
			return nil, fmt.Errorf("pack %s: %w", program, err)
		}
	}
	var all []Built
	for _, image := range Table() {
		built, err := s.newImage(image, shared[image.Program])
		if err != nil {
			return nil, fmt.Errorf("make image %s: %w", image.Name, err)
		}
		all = append(all, built)
	}
	step.End(fmt.Sprintf("packed %d images", len(all)))
	return all, nil
}

func (s Source) newParts(program string, base v1.Layer, byPlatform []Compiled, from supplies) (parts, error) {
	var p parts
	inventory := inventory{source: s, program: program, roots: from.roots}
	for i, platform := range s.platforms() {
		content, err := os.ReadFile(byPlatform[i][program])
		if err != nil {
			return parts{}, err
		}
		layer, err := newProgramLayer(program, content, from.zones)
		if err != nil {
			return parts{}, err
		}
		p.layers = append(p.layers, []v1.Layer{base, layer})
		if err := inventory.add(platform, content); err != nil {
			return parts{}, err
		}
	}
	var err error
	p.sbom, err = inventory.document()
	return p, err
}

func (s Source) newImage(image Image, shared parts) (Built, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	subjects := []mutate.Appendable{}
	for i, platform := range s.platforms() {
		one, err := s.newPlatformImage(image, platform, shared.layers[i])
		if err != nil {
			return Built{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &platform}})
		subjects = append(subjects, one)
	}
	index = mutate.Annotations(index, s.labels(image)).(v1.ImageIndex)
	built := Built{Image: image, Index: index}
	for _, subject := range append(subjects, index) {
		attached, err := newSBOM(shared.sbom, subject, s.created())
		if err != nil {
			return Built{}, err
		}
		built.SBOMs = append(built.SBOMs, attached)
	}
	return built, nil
}

func (s Source) newPlatformImage(image Image, platform v1.Platform, layers []v1.Layer) (v1.Image, error) {
	one := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	one, err := mutate.AppendLayers(one, layers...)
	if err != nil {
		return nil, err
	}
	config, err := one.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Created = v1.Time{Time: s.Created.UTC()}
	config.History = []v1.History{
		{Created: config.Created, CreatedBy: "certificate roots, users, directories"},
		{Created: config.Created, CreatedBy: "/" + image.Program},
	}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", userID, userID),
		Env:        []string{"PATH=/:/bin", "HOME=" + home},
		Entrypoint: []string{image.Entrypoint},
		WorkingDir: image.Dir,
		Labels:     s.labels(image),
	}
	return mutate.ConfigFile(one, config)
}

// labels describe an image, with the labels of the OCI image specification.
func (s Source) labels(image Image) map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":    image.Title,
		"org.opencontainers.image.version":  s.Version,
		"org.opencontainers.image.created":  s.created(),
		"org.opencontainers.image.source":   sourceURL,
		"org.opencontainers.image.licenses": licence,
	}
	if s.Revision != "" {
		labels["org.opencontainers.image.revision"] = s.Revision
	}
	return labels
}

func (s Source) created() string { return s.Created.UTC().Format(time.RFC3339) }
