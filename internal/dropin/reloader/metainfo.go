package reloader

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/feature/reloader"
)

// metaInfoName is the ConfigMap that describes the process to tools.
const metaInfoName = "reloader-meta-info"

// writeMetaInfo writes the ConfigMap, over whatever another process wrote.
func (o Options) writeMetaInfo(ctx context.Context, c client.Writer, version string) error {
	info := o.metaInfo(version)
	err := access.Retry(ctx, func(ctx context.Context) error {
		err := c.Create(ctx, info.DeepCopy(), client.FieldOwner(reloader.FieldManager))
		if apierrors.IsAlreadyExists(err) {
			return c.Update(ctx, info.DeepCopy(), client.FieldOwner(reloader.FieldManager))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("write the ConfigMap %s/%s: %w", info.Namespace, info.Name, err)
	}
	return nil
}

func (o Options) metaInfo(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.MetaNamespace, Name: metaInfoName,
			Labels: map[string]string{"reloader.stakater.com/meta-info": "reloader"},
		},
		Data: map[string]string{
			"buildInfo":       string(encode(buildInfo(version))),
			"deploymentInfo":  string(encode(map[string]string{"name": o.Deployment, "namespace": o.MetaNamespace})),
			"reloaderOptions": string(encode(o.described())),
		},
	}
}

// buildInfo describes the build. Its commit isn't known: equal sources make equal programs.
func buildInfo(version string) map[string]any {
	return map[string]any{
		"goVersion": runtime.Version(), "releaseVersion": version, "commitHash": "", "commitTime": time.Time{}, "edition": "oss",
	}
}

// described are the options under the original's names.
func (o Options) described() map[string]any {
	all := map[string]any{
		"logFormat": o.Process.LogFormat, "logLevel": o.Process.LogLevel,
		"enableHA": o.Process.HA, "enablePProf": o.Process.Pprof, "pprofAddr": o.Process.PprofAddr,

		"autoReloadAll": o.Reload.AutoAll, "reloadStrategy": o.Reload.Strategy,
		"reloadOnCreate": o.Engine.OnCreate, "reloadOnDelete": o.Engine.OnDelete, "syncAfterRestart": o.Reload.SyncAfterRestart,
		"webhookUrl": withoutCredentials(o.Reload.WebhookURL),

		"isArgoRollouts": o.Engine.Scope.Rollouts, "enableCSIIntegration": o.Watch.CSI,
		"resourcesToIgnore": list(o.Watch.IgnoredResources), "workloadTypesToIgnore": list(o.Watch.IgnoredWorkloads),
		"namespaceSelectors": list(o.Watch.NamespaceSelectors), "resourceSelectors": list(o.Watch.ResourceSelectors),
		"namespacesToIgnore": list(o.Watch.IgnoredNamespaces),
	}
	for name, key := range map[string]string{
		"reloaderAutoAnnotation": o.Keys.Auto, "configmapReloaderAutoAnnotation": o.Keys.ConfigMapAuto,
		"secretReloaderAutoAnnotation": o.Keys.SecretAuto, "secretProviderClassReloaderAutoAnnotation": o.Keys.ClassAuto,
		"configmapUpdateOnChangeAnnotation": o.Keys.ConfigMap, "secretUpdateOnChangeAnnotation": o.Keys.Secret,
		"secretProviderClassUpdateOnChangeAnnotation": o.Keys.Class,
		"autoSearchAnnotation":                        o.Keys.Search, "searchMatchAnnotation": o.Keys.Match, "ignoreResourceAnnotation": o.Keys.Ignore,
		"configmapExcludeReloaderAnnotation": o.Keys.ExcludeConfigMaps, "secretExcludeReloaderAnnotation": o.Keys.ExcludeSecrets,
		"secretProviderClassExcludeReloaderAnnotation": o.Keys.ExcludeClasses,
		"rolloutStrategyAnnotation":                    o.Keys.RolloutStrategy,
		"pauseDeploymentAnnotation":                    o.Keys.PausePeriod, "pauseDeploymentTimeAnnotation": o.Keys.PausedAt,
	} {
		all[name] = key
	}
	return all
}

// list is never null in JSON.
func list(items []string) []string { return append([]string{}, items...) }

// withoutCredentials is the address of a webhook without its path, which is a password at most
// receivers.
func withoutCredentials(webhook string) string {
	u, err := url.Parse(webhook)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
