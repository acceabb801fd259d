package images

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// rootsModule provides the certificate roots.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// home is the home directory of the predecessors, which ran as root: manifests mount
// credentials at /root/.docker/config.json. Every user finds them there.
const home = "/root"

// rootsPath is where Go, OpenSSL and curl look for certificate roots.
const rootsPath = "/etc/ssl/certs/ca-certificates.crt"

// newBaseLayer makes the common layer of all images, for every platform.
func newBaseLayer() (v1.Layer, error) {
	return newLayer(baseFiles())
}

func baseFiles() []file {
	return []file{
		{path: "/etc/passwd", mode: 0o644, content: fmt.Appendf(nil,
			"root:x:0:0:root:%[1]s:/sbin/nologin\n%[2]s:x:%[3]d:%[3]d:%[2]s:%[1]s:/sbin/nologin\n", home, userName, userID)},
		{path: "/etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\n%s:x:%d:\n", userName, userID)},
		{path: rootsPath, mode: 0o644, content: certificateRoots()},
		{path: "/tmp", mode: 0o1777, dir: true},
		// Mount points of credentials, accessible for any user.
		{path: home, mode: 0o755, dir: true},
		{path: home + "/.docker", mode: 0o755, dir: true},
		{path: home + "/.kube", mode: 0o755, dir: true},
	}
}

// certificateRoots is Mozilla's list. It leaves out roots that Mozilla trusts only under
// conditions, because a certificate file can't express them.
func certificateRoots() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return text.Bytes()
}

// zonesPath is where Go and the C library look for time zones, for the variable TZ too.
const zonesPath = "/usr/share/zoneinfo"

// timeZones are the files that the Go release contains for machines without them. They are files of the image because the package
// time/tzdata would add 0.4 MB to the program.
func (s Source) timeZones(ctx context.Context) ([]file, error) {
	find := s.command(ctx, "env", "GOROOT")
	find.Env = buildEnvironment(os.Environ(), Platforms()[0])
	root, err := find.Output()
	if err != nil {
		return nil, fmt.Errorf("find the Go release: %w", err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, fmt.Errorf("read the time zones of the Go release, which some distributions leave out: install Go from go.dev: %w", err)
	}
	defer archive.Close()
	var files []file
	for _, zone := range archive.File {
		if zone.FileInfo().IsDir() {
			continue
		}
		content, err := fs.ReadFile(archive, zone.Name)
		if err != nil {
			return nil, fmt.Errorf("read the time zone %s: %w", zone.Name, err)
		}
		files = append(files, file{path: zonesPath + "/" + zone.Name, mode: 0o644, content: content})
	}
	return files, nil
}

// newProgramLayer makes the layer of a program: the program, the paths of the predecessors that it replaces, and
// time zones for the controller. The agent contains them, because it also runs in the images of applications.
func newProgramLayer(program string, content []byte, zones []file) (v1.Layer, error) {
	files := []file{{path: "/" + program, mode: 0o755, content: content}}
	for _, path := range links(program) {
		files = append(files, file{path: path, link: "/" + program})
	}
	if program == Controller {
		files = append(files, zones...)
	}
	if program == Agent {
		// The default directory of k8s-config-controller's image; usually a volume is mounted here.
		files = append(files, file{path: "/config", mode: 0o755, owner: userID, dir: true})
	}
	return newLayer(files)
}
