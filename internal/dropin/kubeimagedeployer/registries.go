package kubeimagedeployer

import (
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
)

// IsLocal reports whether the original asked a registry in plain HTTP if it did not speak
// TLS: one on this machine, in a private network, or whose name ends with .local.
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

// DockerConfigs are where the original looked for Docker's configuration: in the directory of
// DOCKER_CONFIG, or that of the home, which was /root in its image.
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
