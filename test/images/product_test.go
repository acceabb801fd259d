// Package images_test builds the real images of the product and inspects them.
package images_test

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	agentcli "github.com/lockstep-dev/lockstep/internal/agent/cli"
	"github.com/lockstep-dev/lockstep/internal/cli"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/release/images"
	"github.com/lockstep-dev/lockstep/release/tinysource"
)

// product is what "make images" would make of this checkout, for some platforms.
func product(platforms ...v1.Platform) images.Source {
	return images.Source{
		Root: "../..", Version: "v0.0.0-test", Revision: "0123456789abcdef", Created: time.Unix(1700000000, 0), Platforms: platforms,
	}
}

// TestProduct builds the real images for the platform of this machine and inspects them.
func TestProduct(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll)
	inspectProduct(t, ownPlatform(t))
}

// TestProductForEveryPlatform builds the real images as "make images" does, for every
// platform, which compiles the product for each of them. Linking the programs a second time
// gives the same bytes.
func TestProductForEveryPlatform(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierRelease)
	built := inspectProduct(t)
	t.Run("again", func(t *testing.T) {
		t.Parallel()
		linkedAgain(t, built, images.Platforms()[1])
	})
}

// ownPlatform is the platform whose images run on this machine.
func ownPlatform(t *testing.T) v1.Platform {
	t.Helper()
	for _, platform := range images.Platforms() {
		if platform.OS == runtime.GOOS && platform.Architecture == runtime.GOARCH {
			return platform
		}
	}
	t.Skipf("there are no images for %s/%s", runtime.GOOS, runtime.GOARCH)
	return v1.Platform{}
}

// inspectProduct builds the images for some platforms, or for all of them, writes the layout,
// and inspects what it reads back.
func inspectProduct(t *testing.T, platforms ...v1.Platform) []images.Built {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "images")
	made, err := product(platforms...).Build(t.Context(), images.Silent{})
	if err != nil {
		t.Fatal(err)
	}
	if err := images.WriteLayout(dir, made); err != nil {
		t.Fatal(err)
	}
	built, err := images.ReadLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"linux/amd64", "linux/arm64"}
	if len(platforms) > 0 {
		want = []string{platforms[0].String()}
	}
	layers, modules := newUnpacked(), moduleVersions(t, "k8s.io/client-go", "github.com/spf13/cobra", tinysource.RootsModule)
	for _, b := range built {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			inspection{built: b, all: built, platforms: want, modules: modules, unpacked: layers}.run(t)
		})
	}
	return built
}

// linkedAgain: the programs of a platform are linked anew, and are those in the images. That
// packing them gives the same again is shown with small programs.
func linkedAgain(t *testing.T, built []images.Built, platform v1.Platform) {
	t.Helper()
	paths, err := product().Compile(t.Context(), platform, images.Programs(), t.TempDir(), images.Silent{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range built {
		if b.Name != b.Program {
			continue
		}
		again, err := os.ReadFile(paths[b.Program])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, newUnpacked().contents(t, imageFor(t, b, platform))[b.Program].content) {
			t.Errorf("%s for %s differs from the one that was linked before", b.Program, platform)
		}
	}
}

// imageFor is the image of a platform.
func imageFor(t *testing.T, b images.Built, platform v1.Platform) v1.Image {
	t.Helper()
	manifest, err := b.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range manifest.Manifests {
		if d.Platform.Equals(platform) {
			image, err := b.Index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("%s has no image for %s", b.Name, platform)
	return nil
}

// inspection is the inspection of one image among all that were built together.
type inspection struct {
	built     images.Built
	all       []images.Built
	platforms []string          // what it must be made for
	modules   map[string]string // versions that it must list
	*unpacked
}

func (i inspection) run(t *testing.T) {
	t.Helper()
	manifest, err := i.built.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range manifest.Manifests {
		platforms = append(platforms, d.Platform.String())
		image, err := i.built.Index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		i.image(t, image, *d.Platform)
		sameLayers(t, i.built, image, i.all)
	}
	if !slices.Equal(platforms, i.platforms) {
		t.Errorf("platforms %q, want %q", platforms, i.platforms)
	}
	i.sboms(t)
}

// limits are those of the compressed layers of one platform.
func limits() map[string]int64 { return map[string]int64{"lockstep": 45e6, "lockstep-sync": 8e6} }

func (i inspection) image(t *testing.T, image v1.Image, platform v1.Platform) {
	t.Helper()
	b := i.built
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "65532:65532", Entrypoint: []string{entrypoints()[b.Name]}, WorkingDir: workingDir(b.Name), Env: []string{"PATH=/:/bin", "HOME=/root"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    b.Title,
			"org.opencontainers.image.version":  "v0.0.0-test",
			"org.opencontainers.image.revision": "0123456789abcdef",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.created":  "2023-11-14T22:13:20Z",
			"org.opencontainers.image.source":   "https://github.com/lockstep-dev/lockstep",
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("%s (-want +got):\n%s", platform, diff)
	}
	if config.OS != platform.OS || config.Architecture != platform.Architecture {
		t.Errorf("%s says that it is for %s/%s", platform, config.OS, config.Architecture)
	}
	if size := compressed(t, image); size > limits()[b.Program] {
		t.Errorf("%s has %d bytes, more than %d", platform, size, limits()[b.Program])
	}
	files := i.contents(t, image)
	wantZones(t, b.Program, files)
	if diff := cmp.Diff(wantFiles()[b.Program], listing(files)); diff != "" {
		t.Errorf("files of %s (-want +got):\n%s", platform, diff)
	}
	wantRoots(t, files["etc/ssl/certs/ca-certificates.crt"].content)
	wantProgram(t, files[b.Program].content, platform)
	if _, found := files[strings.TrimPrefix(entrypoints()[b.Name], "/")]; !found {
		t.Errorf("%s has no file %s to start", platform, entrypoints()[b.Name])
	}
	// The other images of the program have the same layers.
	if platform.Architecture == runtime.GOARCH && runtime.GOOS == "linux" && b.Name == b.Program {
		answers(t, b, files)
	}
}

func entrypoints() map[string]string {
	return map[string]string{
		"lockstep":                         "/lockstep",
		"lockstep-sync":                    "/lockstep-sync",
		"lockstep-configmap-attacher":      "/go/bin/configmap-attacher",
		"lockstep-kube-image-deployer":     "/app/kube-image-deployer",
		"lockstep-kube-image-deployer-cli": "/kube-image-deployer-cli",
		"lockstep-kubernetes-reloader":     "/kubernetes-reloader",
		"lockstep-reloader":                "/reloader",
		"lockstep-config-controller":       "/bin/start-config-controller",
		"lockstep-k8s-sidecar":             "/k8s-sidecar",
		"lockstep-configmap-reload":        "/configmap-reload",
	}
}

// workingDir is where a program reads a file that is named without a directory: kube-image-deployer
// its .env.
func workingDir(image string) string {
	if image == "lockstep-kube-image-deployer" {
		return "/app"
	}
	return "/"
}

// wantFiles is everything that is in the images of a program: no shell, no other
// program, nothing that only root may read.
func wantFiles() map[string][]string {
	base := []string{
		"drwxr-xr-x 0 etc", "-rw-r--r-- 0 etc/group", "-rw-r--r-- 0 etc/passwd",
		"drwxr-xr-x 0 etc/ssl", "drwxr-xr-x 0 etc/ssl/certs", "-rw-r--r-- 0 etc/ssl/certs/ca-certificates.crt",
		"drwxr-xr-x 0 root", "drwxr-xr-x 0 root/.docker", "drwxr-xr-x 0 root/.kube", "dtrwxrwxrwx 0 tmp",
	}
	controller := append(slices.Clone(base), "-rwxr-xr-x 0 lockstep", "drwxr-xr-x 0 go", "drwxr-xr-x 0 go/bin",
		"Lrwxrwxrwx 0 go/bin/configmap-attacher -> /lockstep", "Lrwxrwxrwx 0 kubernetes-reloader -> /lockstep", "Lrwxrwxrwx 0 reloader -> /lockstep", "Lrwxrwxrwx 0 manager -> /lockstep",
		"drwxr-xr-x 0 usr", "drwxr-xr-x 0 usr/share", "drwxr-xr-x 0 usr/share/zoneinfo", "drwxr-xr-x 0 app", "Lrwxrwxrwx 0 app/kube-image-deployer -> /lockstep", "Lrwxrwxrwx 0 kube-image-deployer-cli -> /lockstep")
	agent := append(slices.Clone(base), "-rwxr-xr-x 0 lockstep-sync", "drwxr-xr-x 0 bin", "drwxr-xr-x 65532 config",
		"Lrwxrwxrwx 0 bin/config-controller -> /lockstep-sync", "Lrwxrwxrwx 0 bin/start-config-controller -> /lockstep-sync",
		"Lrwxrwxrwx 0 k8s-sidecar -> /lockstep-sync", "Lrwxrwxrwx 0 configmap-reload -> /lockstep-sync")
	slices.Sort(controller)
	slices.Sort(agent)
	return map[string][]string{"lockstep": controller, "lockstep-sync": agent}
}

type entry struct {
	header  *tar.Header
	content []byte
}

// unpacked keeps the files of layers, most of which are in several images.
type unpacked struct {
	mu      sync.Mutex
	byLayer map[v1.Hash]map[string]entry
}

func newUnpacked() *unpacked { return &unpacked{byLayer: map[v1.Hash]map[string]entry{}} }

// contents are the files of all layers by their names.
func (u *unpacked) contents(t *testing.T, image v1.Image) map[string]entry {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]entry{}
	for _, layer := range layers {
		maps.Copy(files, u.layer(t, layer))
	}
	return files
}

func (u *unpacked) layer(t *testing.T, layer v1.Layer) map[string]entry {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	digest, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if files, found := u.byLayer[digest]; found {
		return files
	}
	content, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	files := map[string]entry{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			u.byLayer[digest] = files
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(header.Name, "/")] = entry{header, text}
	}
}

// listing leaves out the time zones, which are many: see wantZones.
func listing(files map[string]entry) []string {
	var lines []string
	for name, f := range files {
		if strings.HasPrefix(name, zones) {
			continue
		}
		line := fmt.Sprintf("%s %d %s", f.header.FileInfo().Mode(), f.header.Uid, name)
		if f.header.Linkname != "" {
			line += " -> " + f.header.Linkname
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func compressed(t *testing.T, image v1.Image) int64 {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size
}

// sameLayers compares with the image of the program itself.
func sameLayers(t *testing.T, b images.Built, image v1.Image, all []images.Built) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range all {
		if other.Name != b.Program {
			continue
		}
		of := imageFor(t, other, v1.Platform{OS: config.OS, Architecture: config.Architecture})
		if diff := cmp.Diff(layersOf(t, of), layersOf(t, image)); diff != "" {
			t.Errorf("layers for %s differ from those of %s:\n%s", config.Architecture, other.Name, diff)
		}
		return
	}
	t.Errorf("there is no image %s to compare with", b.Program)
}

func layersOf(t *testing.T, image v1.Image) []v1.Descriptor {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Layers
}

func wantRoots(t *testing.T, text []byte) {
	t.Helper()
	count, known := 0, false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		count++
		known = known || certificate.Subject.CommonName == "ISRG Root X1"
	}
	if count < 100 || !known {
		t.Errorf("%d certificate roots, Let's Encrypt among them: %t", count, known)
	}
}

// wantProgram: static, of the platform, with the time zones in it.
func wantProgram(t *testing.T, content []byte, platform v1.Platform) {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[platform.Architecture]
	if file.Machine != machine {
		t.Errorf("the program for %s is for %s", platform, file.Machine)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("the program for %s is not static: %s", platform, part.Type)
		}
	}
	if !bytes.Contains(content, []byte("Europe/Berlin")) {
		t.Errorf("the program for %s has no time zones", platform)
	}
}

// answers starts the program by every path that leads to it, and sees that it knows
// whose place it takes.
func answers(t *testing.T, b images.Built, files map[string]entry) {
	t.Helper()
	program := filepath.Join(t.TempDir(), b.Program)
	if err := os.WriteFile(program, files[b.Program].content, 0o755); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{
		"lockstep": "lockstep controller", "lockstep-sync": "lockstep-sync [flags]",
		"configmap-attacher": "-rollout", "kubernetes-reloader": "--coalesce-period", "reloader": "--is-Argo-Rollouts", "manager": "--is-Argo-Rollouts",
		"kube-image-deployer": "-controller-watch-key", "kube-image-deployer-cli": "-platform",
		"config-controller": "--configroot", "start-config-controller": "--configroot",
		"k8s-sidecar": "FOLDER_ANNOTATION", "configmap-reload": "volume-dir",
	}
	for name, f := range files {
		if name != b.Program && f.header.Linkname == "" {
			continue
		}
		command := exec.CommandContext(t.Context(), program, "--help")
		command.Args[0] = "/" + name
		out, _ := command.CombinedOutput() // An original ends with 1 or 2 after its usage.
		if want := said[filepath.Base(name)]; want == "" || !strings.Contains(string(out), want) {
			t.Errorf("/%s --help does not say %q:\n%s", name, want, out)
		}
	}
	version := []string{"version"}
	if b.Program == "lockstep-sync" {
		version = []string{"--version"}
	}
	out, err := exec.CommandContext(t.Context(), program, version...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v0.0.0-test") {
		t.Errorf("%s says of its version %q, error %v", b.Program, out, err)
	}
}

// sbom is what is looked at of an SPDX document.
type sbom struct {
	Version  string `json:"spdxVersion"`
	Packages []struct {
		Name, SPDXID string
		VersionInfo  string
		FileName     string `json:"packageFileName"`
		Checksums    []struct{ ChecksumValue string }
	}
	Relationships []struct{ SPDXElementID, RelationshipType, RelatedSPDXElement string }
}

// TestEveryDropInHasAnImage: whoever teaches a program the command line of another one
// adds a row to the table.
func TestEveryDropInHasAnImage(t *testing.T) {
	t.Parallel()
	names := cli.DropIns()
	for _, match := range regexp.MustCompile(`(?m)^    (\S+)  +\S`).FindAllStringSubmatch(agentcli.Document().Long, -1) {
		if match[1] != "start-config-controller" { // how the image of config-controller starts it
			names = append(names, match[1])
		}
	}
	var want, got []string
	for _, name := range names {
		want = append(want, "lockstep-"+name)
	}
	for _, image := range images.Table() {
		if image.Name != image.Program {
			got = append(got, image.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("drop-in modes and images (-modes +images):\n%s", diff)
	}
}
