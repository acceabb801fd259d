package images_test

import (
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/release/images"
	"github.com/lockstep-dev/lockstep/release/tinysource"
)

// small are images of a small stand-in for the product, and those of its next commit. They
// are built once per process, because tests only read them.
var small struct {
	once       sync.Once
	old, fresh []images.Built
}

// smallImages returns the images of a commit and those of the next one.
func smallImages(t *testing.T) (old, fresh []images.Built) {
	t.Helper()
	small.once.Do(func() {
		source := tinysource.New(t)
		built := build(t, source)
		source.Revision = "fedcba9876543210"
		small.old, small.fresh = built, build(t, source)
	})
	if small.old == nil {
		t.Fatal("the small images couldn't be built: see the first test that failed")
	}
	return small.old, small.fresh
}

func build(t *testing.T, source images.Source) []images.Built {
	t.Helper()
	built, err := source.Build(t.Context(), images.Silent{})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// digests are those of the images, in the order of the table, and of what is attached.
func digests(t *testing.T, built []images.Built) []string {
	t.Helper()
	var all []string
	for _, b := range built {
		digest, err := b.Index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b.Name+" "+digest.String())
		for _, attached := range b.SBOMs {
			digest, err := attached.Digest()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b.Name+" SBOM "+digest.String())
		}
	}
	return all
}
