package labtest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
)

// containerdConfig keeps all containerd data in the control plane's directory. The first
// placeholder is that directory, the second the image that holds a pod's namespaces, the
// third the directory of the network plugins.
const containerdConfig = `version = 2
root = "%[1]s/containerd/root"
state = "%[1]s/containerd/state"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "%[1]s/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[2]s"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "%[1]s/containerd/runc"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "%[1]s/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "%[1]s/cni"
    bin_dir = "%[3]s"
`

// networkConfig joins pods to the node's bridge, with the node as their gateway.
const networkConfig = `{"cniVersion": "0.4.0", "name": "lab", "plugins": [{
  "type": "bridge", "bridge": "labcni0", "isGateway": true, "isDefaultGateway": true, "ipMasq": false,
  "ipam": {"type": "host-local", "dataDir": "%[1]s/cni-addresses",
    "ranges": [[{"subnet": "10.99.0.0/24", "rangeStart": "10.99.0.10", "gateway": "10.99.0.1"}]]}
}]}
`

// kubeletConfig keeps the kubelet's defaults where a test could depend on them, above all
// how and how often it syncs ConfigMaps. A test that needs others sets
// [Options.KubeletConfig]. Only clients with a certificate of the lab may use the kubelet,
// because it runs any command for them.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: %[2]s
readOnlyPort: 0
healthzPort: 0
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: %[1]q}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: "unix://%[3]s/containerd.sock"
cgroupDriver: cgroupfs
cgroupRoot: /%[4]s
cgroupsPerQOS: true
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: [pods]
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, nodefs.inodesFree: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
registerNode: true
resolvConf: ""
podLogsDir: %[3]s/pod-logs
volumePluginDir: %[3]s/volume-plugins
protectKernelDefaults: false
`

// writeNodeFiles writes the configuration of the node's programs.
func (c *Cluster) writeNodeFiles(kubeletPort string) error {
	ca, err := os.ReadFile(c.file(caFile))
	if err != nil {
		return err
	}
	cert, err := os.ReadFile(c.file(adminCertFile))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(c.file(adminKeyFile))
	if err != nil {
		return err
	}
	user := fmt.Sprintf("{client-certificate-data: %s, client-key-data: %s}", encode(cert), encode(key))
	dir := c.run.Dir
	for name, content := range map[string][]byte{
		"containerd.toml":     fmt.Appendf(nil, containerdConfig, dir, PauseImage, pluginDir),
		"cni/10-lab.conflist": fmt.Appendf(nil, networkConfig, dir),
		"kubelet.yaml":        fmt.Appendf(nil, kubeletConfig+c.options.KubeletConfig, c.file(caFile), kubeletPort, dir, remains.Group(dir)),
		"kubelet.kubeconfig":  kubeconfig("https://"+serviceAddress+":443", ca, user),
		registryHostsFile:     []byte(registryHosts),

		hostsFile(c.SecureRegistry()):       c.secureRegistryHosts(),
		hostsFile(c.SecureRegistryInPods()): c.secureRegistryHosts(),

		"kubelet/pki/.keep":     nil,
		"pod-logs/.keep":        nil,
		"volume-plugins/.keep":  nil,
		"containerd/root/.keep": nil,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("write the node's configuration: %w", err)
		}
	}
	return nil
}
