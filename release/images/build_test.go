package images_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/release/images"
)

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
