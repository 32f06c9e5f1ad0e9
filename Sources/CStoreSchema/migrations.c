#include "stall_migrations.h"

// `#embed` is of C23; Clang has it in every language mode, and says so.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char create_reports[] = {
#embed "../../migrations/0001_create_reports.sql"
    , 0};
static const char create_views[] = {
#embed "../../migrations/0002_create_views.sql"
    , 0};
static const char add_cause[] = {
#embed "../../migrations/0003_add_cause.sql"
    , 0};
static const char add_exposure[] = {
#embed "../../migrations/0004_add_exposure.sql"
    , 0};
static const char add_groups[] = {
#embed "../../migrations/0005_add_groups.sql"
    , 0};
static const char add_agent_cost[] = {
#embed "../../migrations/0007_add_agent_cost.sql"
    , 0};
static const char imply_weights[] = {
#embed "../../migrations/0008_imply_weights.sql"
    , 0};
static const char add_hang_index[] = {
#embed "../../migrations/0009_add_hang_index.sql"
    , 0};
static const char add_checksums[] = {
#embed "../../migrations/0010_add_checksums.sql"
    , 0};
static const char add_ending[] = {
#embed "../../migrations/0011_add_ending.sql"
    , 0};
static const char add_watched_loops[] = {
#embed "../../migrations/0012_add_watched_loops.sql"
    , 0};
static const char add_origins[] = {
#embed "../../migrations/0013_add_origins.sql"
    , 0};
static const char add_group_facts[] = {
#embed "../../migrations/0014_add_group_facts.sql"
    , 0};
static const char roll_up_exposure[] = {
#embed "../../migrations/0015_roll_up_exposure.sql"
    , 0};
static const char add_partial_imports[] = {
#embed "../../migrations/0016_add_partial_imports.sql"
    , 0};
static const char shorten_reports[] = {
#embed "../../migrations/0017_shorten_reports.sql"
    , 0};
static const char add_delayed_time[] = {
#embed "../../migrations/0018_add_delayed_time.sql"
    , 0};
static const char bound_watched_sums[] = {
#embed "../../migrations/0019_bound_watched_sums.sql"
    , 0};
static const char keep_rules[] = {
#embed "../../migrations/0020_keep_rules.sql"
    , 0};
static const char name_sampled[] = {
#embed "../../migrations/0021_name_sampled.sql"
    , 0};
static const char add_device[] = {
#embed "../../migrations/0022_add_device.sql"
    , 0};
static const char name_blocking[] = {
#embed "../../migrations/0023_name_blocking.sql"
    , 0};
static const char newest_schema[] = {
#embed "schema.sql"
    , 0};

static const StallMigration migrations[] = {
    {"0001_create_reports", create_reports},
    {"0002_create_views", create_views},
    {"0003_add_cause", add_cause},
    {"0004_add_exposure", add_exposure},
    {"0005_add_groups", add_groups},
    {"0007_add_agent_cost", add_agent_cost},
    {"0008_imply_weights", imply_weights},
    {"0009_add_hang_index", add_hang_index},
    {"0010_add_checksums", add_checksums},
    {"0011_add_ending", add_ending},
    {"0012_add_watched_loops", add_watched_loops},
    {"0013_add_origins", add_origins},
    {"0014_add_group_facts", add_group_facts},
    {"0015_roll_up_exposure", roll_up_exposure},
    {"0016_add_partial_imports", add_partial_imports},
    {"0017_shorten_reports", shorten_reports},
    {"0018_add_delayed_time", add_delayed_time},
    {"0019_bound_watched_sums", bound_watched_sums},
    {"0020_keep_rules", keep_rules},
    {"0021_name_sampled", name_sampled},
    {"0022_add_device", add_device},
    {"0023_name_blocking", name_blocking},
};

const int stall_migration_count = sizeof migrations / sizeof *migrations;

const char *stall_newest_schema(void) { return newest_schema; }

const StallMigration *stall_migration(int index) { return &migrations[index]; }
