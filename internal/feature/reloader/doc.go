// Package reloader follows ConfigMaps, Secrets and SecretProviderClasses as Stakater Reloader does,
// within its roles: they don't allow to watch workloads. So a change of a source waits in its
// namespace for the quiet window, and then a pass lists the workloads of the namespace, decides for
// each, and writes all that is due for it at once.
//
//	watch -> pending -> pass: list -> decide -> write -> record
//
// The decision is the pure function decide in decide.go.
package reloader
