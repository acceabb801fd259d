package labtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/lockstep-dev/lockstep/internal/labtest/image"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// RegistryName is the name of the lab's registry on a real node: the node pulls
// "registry.lab/app:1" from it.
const RegistryName = "registry.lab"

// registryConfig keeps everything in the control plane's directory.
const registryConfig = `version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: %q}
  delete: {enabled: true}
http: {addr: %q}
`

// registryHostsFile is where containerd looks for registryHosts.
const registryHostsFile = "registries/" + RegistryName + "/hosts.toml"

// registryHosts configures the registry's address for containerd, as seen from the node: on
// the bridge, where the node forwards it to the host.
const registryHosts = `server = "http://10.99.0.1:5000"
[host."http://10.99.0.1:5000"]
  capabilities = ["pull", "resolve"]
`

// Registry is the address of the lab's registry on this machine, for clients over
// plain HTTP. Nothing answers there unless the component runs.
func (c *Cluster) Registry() string { return c.run.Registry }

func (c *Cluster) launchRegistry(ctx context.Context) error {
	text := fmt.Sprintf(registryConfig, c.file("registry"), c.run.Registry)
	if err := c.serveRegistry(program.Registry, text); err != nil {
		return err
	}
	server := &api{server: "http://" + c.run.Registry, client: http.DefaultClient}
	return c.await(ctx, program.Registry, func(ctx context.Context) error {
		_, err := server.get(ctx, "/v2/")
		return err
	})
}

// serveRegistry starts a process of the registry's program with a configuration.
func (c *Cluster) serveRegistry(name, text string) error {
	config := c.file(name + ".yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write its configuration: %w", err)
	}
	built := c.programs[program.Registry]
	return c.begin(name, built.Version, process.Spec{
		Path: built.Path, Args: []string{"serve", config},
		Env: append(os.Environ(), "OTEL_TRACES_EXPORTER=none"), // It would try to reach a collector.
	})
}

// PushImage builds an image from files and pushes it to the lab's registry. Its name begins
// with [RegistryName]; a real node pulls it by that name.
func (c *Cluster) PushImage(ctx context.Context, spec image.Image) error {
	if !c.Has(Registry) {
		return errors.New("this control plane runs without a registry; start it with --with registry")
	}
	return spec.Push(ctx, RegistryName, c.run.Registry)
}

func registryAddress(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
