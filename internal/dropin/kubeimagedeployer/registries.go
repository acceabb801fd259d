package kubeimagedeployer

import (
	"net"
	"net/netip"
	"path/filepath"
	"strings"
)

// IsLocal reports whether the original fell back to plain HTTP for a registry without TLS, by the
// rule of its library: 127.0.0.1, ::1, a private IPv4 address, localhost with a port, and a name
// that ends with .local or .localhost.
func IsLocal(registry string) bool {
	host, _, err := net.SplitHostPort(registry)
	withPort := err == nil
	if !withPort {
		host = registry
	}
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return address == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || address == netip.IPv6Loopback() || address.Is4() && address.IsPrivate()
	}
	return withPort && host == "localhost" || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".localhost")
}

// DockerConfigs are the paths where the original searched for Docker's configuration: in the
// directory of DOCKER_CONFIG, or in the home directory, which was /root in its image.
func DockerConfigs(lookup func(string) (string, bool)) []string {
	const name = "config.json"
	if dir, _ := lookup("DOCKER_CONFIG"); dir != "" {
		return []string{filepath.Join(dir, name)}
	}
	home, _ := lookup("HOME")
	files := []string{filepath.Join(home, ".docker", name)}
	if inImage := filepath.Join("/root", ".docker", name); files[0] != inImage {
		files = append(files, inImage)
	}
	return files
}
