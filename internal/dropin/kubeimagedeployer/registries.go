package kubeimagedeployer

import (
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
)

// IsLocal reports whether the original fell back to plain HTTP for a registry without TLS: one
// on this machine, in a private network, or with a name that ends with .local.
func IsLocal(registry string) bool {
	host, _, err := net.SplitHostPort(registry)
	if err != nil {
		host = registry
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return address.IsLoopback() || address.Is4() && address.IsPrivate()
	}
	return regexp.MustCompile(`^(.*\.)?local(host)?$`).MatchString(host)
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
