package images

import (
	"cmp"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The programs of the product, by the name of their executable.
const (
	Controller = "lockstep"
	Agent      = "lockstep-sync"
)

// Programs lists the executables in the images.
func Programs() []string { return []string{Controller, Agent} }

// Platforms lists the platforms of each image.
func Platforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
}

// Image is one image reference. Images of one program have the same layers and
// differ in their entry point.
type Image struct {
	// Name is "lockstep", "lockstep-sync" or "lockstep-" with a predecessor's name.
	Name string
	// Program is the executable, which is in the root directory: "/lockstep".
	Program string
	// Entrypoint is the path that a container starts when its manifest doesn't set a command.
	Entrypoint string
	// Dir is the working directory.
	Dir string
	// Title is a short description of the image, for its labels.
	Title string
}

// predecessor is a program that an image replaces. Its manifests set args and no command, so
// the image starts the program by the predecessor's own name, from which the program knows
// which command line to expect.
type predecessor struct {
	name    string
	program string
	// entrypoint is the path that the predecessor's image starts, where that is known.
	entrypoint string
	// dir is the working directory, where the predecessor read a file from it; else it is /.
	dir string
	// also are further absolute paths in manifests that do set a command.
	also []string
}

// predecessors is the only table of the replaced programs. A new drop-in mode of a program
// needs a row here; a test compares the two.
func predecessors() []predecessor {
	return []predecessor{
		{name: "configmap-attacher", program: Controller, entrypoint: "/go/bin/configmap-attacher"},
		{name: "kube-image-deployer", program: Controller, entrypoint: "/app/kube-image-deployer", dir: "/app"}, // .env
		{name: "kube-image-deployer-cli", program: Controller, entrypoint: "/kube-image-deployer-cli"},
		{name: "kubernetes-reloader", program: Controller, entrypoint: "/kubernetes-reloader"},
		// The original's image starts /manager.
		{name: "reloader", program: Controller, entrypoint: "/reloader", also: []string{"/manager"}},
		// The entry script of the original's image has its own default: /config.
		{name: "config-controller", program: Agent, entrypoint: "/bin/start-config-controller", also: []string{"/bin/config-controller"}},
		{name: "k8s-sidecar", program: Agent, entrypoint: "/k8s-sidecar"},
		{name: "configmap-reload", program: Agent, entrypoint: "/configmap-reload"},
	}
}

// Table lists every image: the controller, the agent, and one for each predecessor.
func Table() []Image {
	list := []Image{
		{Name: Controller, Program: Controller, Entrypoint: "/" + Controller, Dir: "/", Title: "Lockstep controller"},
		{Name: Agent, Program: Agent, Entrypoint: "/" + Agent, Dir: "/", Title: "Lockstep agent"},
	}
	for _, p := range predecessors() {
		list = append(list, Image{
			Name: Controller + "-" + p.name, Program: p.program, Entrypoint: p.entrypoint, Dir: cmp.Or(p.dir, "/"),
			Title: "Lockstep in the place of " + p.name,
		})
	}
	return list
}

// links are the paths of predecessors in every image of a program, all links to the
// program.
func links(program string) []string {
	var paths []string
	for _, p := range predecessors() {
		if p.program == program {
			paths = append(append(paths, p.entrypoint), p.also...)
		}
	}
	return paths
}
