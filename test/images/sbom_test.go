package images_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// sboms: the index and each platform's image have one attached, and it lists
// what is inside, by the digests of the programs.
func (i inspection) sboms(t *testing.T) {
	t.Helper()
	b := i.built
	digest, err := b.Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := b.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	subjects := map[v1.Hash]int{digest: 0}
	var sums []string
	for _, d := range manifest.Manifests {
		subjects[d.Digest] = 0
		image, err := b.Index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(i.contents(t, image)[b.Program].content)
		sums = append(sums, hex.EncodeToString(sum[:]))
	}
	for _, attached := range b.SBOMs {
		of, err := attached.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		subjects[of.Subject.Digest]++
		i.sbom(t, attached, sums)
	}
	for subject, count := range subjects {
		if count != 1 {
			t.Errorf("%s has %d SBOMs", subject, count)
		}
	}
}

func (i inspection) sbom(t *testing.T, attached v1.Image, sums []string) {
	t.Helper()
	layers, err := attached.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d documents, error %v", len(layers), err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var document sbom
	if err := json.NewDecoder(content).Decode(&document); err != nil {
		t.Fatal(err)
	}
	ids, versions, programs := map[string]bool{"SPDXRef-DOCUMENT": true}, map[string]string{}, []string{}
	for _, p := range document.Packages {
		if ids[p.SPDXID] || !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(p.SPDXID) {
			t.Errorf("%s is used twice or is no identifier", p.SPDXID)
		}
		ids[p.SPDXID] = true
		versions[p.Name] = p.VersionInfo
		if p.FileName == "/"+i.built.Program {
			programs = append(programs, p.Checksums[0].ChecksumValue)
		}
	}
	for _, r := range document.Relationships {
		if !ids[r.SPDXElementID] || !ids[r.RelatedSPDXElement] {
			t.Errorf("%+v is of something that is not listed", r)
		}
	}
	if document.Version != "SPDX-2.3" || !slices.Equal(programs, sums) {
		t.Errorf("%s lists programs %q, want %q", document.Version, programs, sums)
	}
	for module, want := range i.modules {
		if versions[module] != want {
			t.Errorf("%s is listed as %q, want %s", module, versions[module], want)
		}
	}
	if versions["stdlib"] != strings.TrimPrefix(runtime.Version(), "go") {
		t.Errorf("the standard library is listed as %q, want %s", versions["stdlib"], runtime.Version())
	}
}

// moduleVersions are the versions of modules that this checkout requires.
func moduleVersions(t *testing.T, modules ...string) map[string]string {
	t.Helper()
	list := append([]string{"list", "-m", "-f", "{{.Path}} {{.Version}}"}, modules...)
	out, err := exec.CommandContext(t.Context(), "go", list...).Output()
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(out)) {
		module, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[module] = version
	}
	if len(versions) != len(modules) {
		t.Fatalf("versions are %v, want those of %q", versions, modules)
	}
	return versions
}
