package labtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/lockstep-dev/lockstep/internal/labtest/image"
)

// RegistryUser and RegistryPassword are the credentials of the registry with TLS. It listens
// on loopback only, and contains only images that tests push.
const (
	RegistryUser     = "lab"
	RegistryPassword = "lab-password"
)

// registryUsers is the file of users: the password above, hashed with bcrypt.
const registryUsers = RegistryUser + ":$2a$05$CE2VBCHQzzAkpmpTnh.mdOo7FbL1XY2J6FkdT.IQfAXYm/ufBq3jy\n"

// nodeAddress is the node's address for services on the host.
const nodeAddress = "10.99.0.1"

const (
	secureProcess      = string(SecureRegistry)
	registryCertFile   = "registry.crt"
	registryKeyFile    = "registry.key"
	registryUsersFile  = "registry.users"
	secureRegistryPort = "5001" // on the node
)

// secureRegistryConfig has placeholders for directory, users, address, certificate and key.
const secureRegistryConfig = `version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: %q}
auth: {htpasswd: {realm: lab, path: %q}}
http: {addr: %q, tls: {certificate: %q, key: %q}}
`

// secureRegistryHosts configures the registry's address, CA and credentials for containerd:
// a node with its own credentials pulls for every pod. The placeholders are for the address,
// the CA file and the credentials.
const secureRegistryHosts = `server = "https://%[1]s"
[host."https://%[1]s"]
  capabilities = ["pull", "resolve"]
  ca = %[2]q
  [host."https://%[1]s".header]
    authorization = "Basic %[3]s"
`

// SecureRegistry is the address of the registry with TLS. A real node uses the same address,
// so one reference works for pushing and for pods.
func (c *Cluster) SecureRegistry() string { return c.run.SecureRegistry }

// SecureRegistryInPods is the same registry's address in a real node's pods. The node uses it too.
func (c *Cluster) SecureRegistryInPods() string { return nodeAddress + ":" + secureRegistryPort }

// Authority is the path of the lab's CA certificate.
func (c *Cluster) Authority() string { return c.file(caFile) }

// RegistryLogin writes a Docker configuration with a user's credentials for the registry
// with TLS into a directory, as "docker login" does.
func (c *Cluster) RegistryLogin(dir, user, password string) error {
	text, err := json.Marshal(map[string]any{"auths": map[string]any{c.run.SecureRegistry: map[string]string{"auth": basic(user, password)}}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}

// PushSecureImage builds an image from files, pushes it to the registry with TLS, whose
// address its name begins with, and returns its digest.
func (c *Cluster) PushSecureImage(ctx context.Context, spec image.Image) (string, error) {
	authority, err := os.ReadFile(c.Authority())
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return spec.PushTo(ctx,
		remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: RegistryUser, Password: RegistryPassword})),
		remote.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}))
}

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

func (c *Cluster) launchSecureRegistry(ctx context.Context) error {
	users := c.file(registryUsersFile)
	if err := os.WriteFile(users, []byte(registryUsers), 0o600); err != nil {
		return fmt.Errorf("write its users: %w", err)
	}
	text := fmt.Sprintf(secureRegistryConfig, c.file(secureProcess), users, c.run.SecureRegistry, c.file(registryCertFile), c.file(registryKeyFile))
	if err := c.serveRegistry(secureProcess, text); err != nil {
		return err
	}
	server := &api{server: "https://" + c.run.SecureRegistry, client: c.api.client}
	return c.await(ctx, secureProcess, func(ctx context.Context) error {
		_, err := server.get(ctx, "/v2/")
		if err != nil && strings.Contains(err.Error(), "401") {
			return nil // It is up and requires credentials.
		}
		return err
	})
}

// hostsFile is where containerd looks for a registry's configuration: the colon of an address
// becomes an underscore.
func hostsFile(address string) string {
	host, port, _ := strings.Cut(address, ":")
	return "registries/" + host + "_" + port + "_/hosts.toml"
}

func (c *Cluster) secureRegistryHosts() []byte {
	return fmt.Appendf(nil, secureRegistryHosts, c.SecureRegistryInPods(), c.file(caFile), basic(RegistryUser, RegistryPassword))
}
