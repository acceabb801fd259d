package images

import v1 "github.com/google/go-containerregistry/pkg/v1"

// The programs of the product, by the name of their executable.
const (
	Controller = "lockstep"
	Agent      = "lockstep-sync"
)

// Programs lists the executables that images are made of.
func Programs() []string { return []string{Controller, Agent} }

// Platforms lists what each image is made for.
func Platforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
}

// Image is one image reference. Images of one program have the same layers and
// differ in their entry point.
type Image struct {
	// Name is "lockstep", "lockstep-sync" or "lockstep-" with a predecessor's name.
	Name string
	// Program is the executable inside, which lies at the root: "/lockstep".
	Program string
	// Entrypoint is the path that a container starts when its manifest sets no command.
	Entrypoint string
	// Title is the image in a few words, for its labels.
	Title string
}

// predecessor is a program whose place an image takes. Its manifests set args and no
// command, so the image starts the program by the predecessor's own name, which tells
// the program whose command line to understand.
type predecessor struct {
	name    string
	program string
	// entrypoint is the path that the predecessor's image starts, where that is known.
	entrypoint string
	// also are further absolute paths in manifests that do set a command.
	also []string
}

// predecessors is the one table of the programs that are replaced. A new drop-in mode
// of a program needs a row here; a test compares the two.
func predecessors() []predecessor {
	return []predecessor{
		{name: "configmap-attacher", program: Controller, entrypoint: "/go/bin/configmap-attacher"},
		{name: "kube-image-deployer", program: Controller, entrypoint: "/app/kube-image-deployer"},
		{name: "kube-image-deployer-cli", program: Controller, entrypoint: "/kube-image-deployer-cli"},
		{name: "kubernetes-reloader", program: Controller, entrypoint: "/kubernetes-reloader"},
		// The entry script of the original's image has a default of its own: /config.
		{name: "config-controller", program: Agent, entrypoint: "/bin/start-config-controller", also: []string{"/bin/config-controller"}},
		{name: "k8s-sidecar", program: Agent, entrypoint: "/k8s-sidecar"},
		{name: "configmap-reload", program: Agent, entrypoint: "/configmap-reload"},
	}
}

// Table lists every image: the controller, the agent, and one for each predecessor.
func Table() []Image {
	list := []Image{
		{Name: Controller, Program: Controller, Entrypoint: "/" + Controller, Title: "Lockstep controller"},
		{Name: Agent, Program: Agent, Entrypoint: "/" + Agent, Title: "Lockstep agent"},
	}
	for _, p := range predecessors() {
		list = append(list, Image{
			Name: Controller + "-" + p.name, Program: p.program, Entrypoint: p.entrypoint,
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
