// Package ask answers users' questions about their workloads: what happened, what the
// state is, and what would happen. It reads and never writes. It uses the controller's
// own decision, so an answer can't contradict the controller.
package ask
