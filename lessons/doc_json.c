/* SPDX-License-Identifier: Apache-2.0 */
#include "doc_json.h"

#ifdef CLATTN_HAVE_CJSON

#include <string.h>

/* ---- trees that are whole or not there ----------------------------------------------------------------------------- */

typedef struct tree {
    cJSON *object;
    bool whole;
} tree;

static void put(tree *tree, const char *name, cJSON *item) {
    if (item == NULL || !tree->whole || !cJSON_AddItemToObject(tree->object, name, item)) {
        cJSON_Delete(item);
        tree->whole = false;
    }
}

static void put_text(tree *tree, const char *name, const char *text) {
    if (text != NULL) put(tree, name, cJSON_CreateString(text));
}

static void put_number(tree *tree, const char *name, double number) {
    put(tree, name, cJSON_CreateNumber(number));
}

/* Without memory the tree is deleted. */
static cJSON *finish(tree tree) {
    if (tree.whole) return tree.object;
    cJSON_Delete(tree.object);
    return NULL;
}

static tree begin(void) {
    cJSON *object = cJSON_CreateObject();
    return (tree){object, object != NULL};
}

static void append(cJSON **array, cJSON *item) {
    if (*array != NULL && item != NULL && cJSON_AddItemToArray(*array, item)) return;
    cJSON_Delete(item);
    cJSON_Delete(*array);
    *array = NULL;
}

static cJSON *texts(const char *const *items, size_t count) {
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; array != NULL && i < count; i++) append(&array, cJSON_CreateString(items[i]));
    return array;
}

static void put_texts(tree *tree, const char *name, const char *const *items, size_t count) {
    if (items != NULL) put(tree, name, texts(items, count));
}

static cJSON *numbers(const double *values, size_t count) {
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; array != NULL && i < count; i++) append(&array, cJSON_CreateNumber(values[i]));
    return array;
}

static cJSON *number_rows(const double *values, int64_t rows, int64_t cols) {
    cJSON *array = cJSON_CreateArray();
    for (int64_t i = 0; array != NULL && i < rows; i++) append(&array, numbers(values + i * cols, (size_t)cols));
    return array;
}

/* ---- figures of a document ----------------------------------------------------------------------------------------- */

static cJSON *flag_rows(const doc_matrix *matrix, const bool *flags) {
    cJSON *array = cJSON_CreateArray();
    for (int64_t i = 0; array != NULL && i < matrix->rows; i++) {
        cJSON *row = cJSON_CreateArray();
        for (int64_t j = 0; row != NULL && j < matrix->cols; j++) append(&row, cJSON_CreateBool(flags[i * matrix->cols + j]));
        append(&array, row);
    }
    return array;
}

/* Of each row, the columns of its largest. */
static cJSON *top_columns(const doc_matrix *matrix) {
    cJSON *array = cJSON_CreateArray();
    for (int64_t i = 0; array != NULL && i < matrix->rows; i++) {
        cJSON *row = cJSON_CreateArray();
        for (int64_t j = 0; row != NULL && j < matrix->cols; j++)
            if (matrix->top[i * matrix->cols + j]) append(&row, cJSON_CreateNumber((double)j));
        append(&array, row);
    }
    return array;
}

static cJSON *matrix_json(const doc_matrix *matrix) {
    static const char *const growths[] = {[DOC_WHOLE] = "whole", [DOC_BY_ROW] = "row", [DOC_BY_CELL] = "cell"};
    tree tree = begin();
    put_text(&tree, "symbol", matrix->symbol);
    put_text(&tree, "role", doc_role_name(matrix->role));
    put_number(&tree, "rows", (double)matrix->rows);
    put_number(&tree, "cols", (double)matrix->cols);
    put(&tree, "values", number_rows(matrix->values, matrix->rows, matrix->cols));
    if (matrix->masked != NULL) put(&tree, "masked", flag_rows(matrix, matrix->masked));
    if (matrix->top != NULL) put(&tree, "top", top_columns(matrix));
    put_texts(&tree, "row_labels", matrix->row_labels, (size_t)matrix->rows);
    put_texts(&tree, "col_labels", matrix->col_labels, (size_t)matrix->cols);
    put_text(&tree, "row_axis", matrix->row_axis);
    put_text(&tree, "col_axis", matrix->col_axis);
    put_number(&tree, "low", matrix->low);
    put_number(&tree, "high", matrix->high);
    if (matrix->is_ledger) put(&tree, "ledger", cJSON_CreateTrue());
    put_text(&tree, "scale_group", matrix->scale_group);
    put_number(&tree, "decimals", matrix->decimals);
    put_text(&tree, "rule", doc_rule_name(matrix->rule));
    put_text(&tree, "left", matrix->left);
    put_text(&tree, "right", matrix->right);
    put_number(&tree, "factor", matrix->factor);
    put_text(&tree, "growth", growths[matrix->growth]);
    put_texts(&tree, "captions", matrix->captions, (size_t)doc_growth_steps(matrix));
    if (matrix->averaged[0] > 0)
        put(&tree, "averaged", numbers((double[]){(double)matrix->averaged[0], (double)matrix->averaged[1]}, 2));
    return finish(tree);
}

static cJSON *axis_json(const doc_axis *axis) {
    tree tree = begin();
    put_text(&tree, "label", axis->label);
    put(&tree, "logarithmic", cJSON_CreateBool(axis->logarithmic));
    if (axis->low != axis->high) {
        put_number(&tree, "low", axis->low);
        put_number(&tree, "high", axis->high);
    }
    return finish(tree);
}

static cJSON *series_json(const doc_series *series) {
    tree tree = begin();
    put_text(&tree, "name", series->name);
    put_text(&tree, "role", doc_role_name(series->role));
    put(&tree, "x", numbers(series->x, series->count));
    put(&tree, "y", numbers(series->y, series->count));
    if (series->low != NULL) put(&tree, "low", numbers(series->low, series->count));
    if (series->high != NULL) put(&tree, "high", numbers(series->high, series->count));
    return finish(tree);
}

static cJSON *plot_json(const doc_plot *plot) {
    tree tree = begin();
    put_text(&tree, "mark", plot->mark == DOC_BARS ? "bars" : "line");
    put(&tree, "x", axis_json(&plot->x));
    put(&tree, "y", axis_json(&plot->y));
    put_number(&tree, "decimals", plot->decimals);
    if (plot->series_count > 0) put_texts(&tree, "categories", plot->categories, plot->series[0].count);
    cJSON *all = cJSON_CreateArray();
    for (size_t s = 0; all != NULL && s < plot->series_count; s++) append(&all, series_json(&plot->series[s]));
    put(&tree, "series", all);
    return finish(tree);
}

static cJSON *table_json(const doc_table *table) {
    tree tree = begin();
    put_texts(&tree, "head", table->head, table->cols);
    cJSON *rows = cJSON_CreateArray();
    for (size_t r = 0; rows != NULL && r < table->rows; r++) append(&rows, texts(table->cells + r * table->cols, table->cols));
    put(&tree, "cells", rows);
    return finish(tree);
}

static cJSON *point_json(const doc_point *point) {
    tree tree = begin();
    put_text(&tree, "label", point->label);
    put(&tree, "from", numbers(point->from, 3));
    put(&tree, "to", numbers(point->to, 3));
    return finish(tree);
}

static cJSON *space_json(const doc_space *space) {
    tree tree = begin();
    put(&tree, "arrows", cJSON_CreateBool(space->arrows));
    put_texts(&tree, "axes", space->axes, 3);
    cJSON *points = cJSON_CreateArray();
    for (size_t i = 0; points != NULL && i < space->count; i++) append(&points, point_json(&space->points[i]));
    put(&tree, "points", points);
    return finish(tree);
}

static cJSON *node_json(const doc_node *node) {
    tree tree = begin();
    put_text(&tree, "label", node->label);
    put_number(&tree, "lane", node->lane);
    put_number(&tree, "place", node->place);
    put_number(&tree, "step", node->step);
    return finish(tree);
}

static cJSON *graph_json(const doc_graph *graph) {
    tree tree = begin();
    cJSON *nodes = cJSON_CreateArray(), *edges = cJSON_CreateArray();
    for (size_t i = 0; nodes != NULL && i < graph->node_count; i++) append(&nodes, node_json(&graph->nodes[i]));
    for (size_t i = 0; edges != NULL && i < graph->edge_count; i++)
        append(&edges, numbers((double[]){(double)graph->edges[i].from, (double)graph->edges[i].to}, 2));
    put_texts(&tree, "lanes", graph->lanes, (size_t)graph->lane_count);
    put(&tree, "nodes", nodes);
    put(&tree, "edges", edges);
    return finish(tree);
}

static cJSON *lane_json(const doc_lane *lane) {
    tree tree = begin();
    put_text(&tree, "name", lane->name);
    put_text(&tree, "note", lane->note);
    put_text(&tree, "role", doc_role_name(lane->role));
    put(&tree, "one_by_one", cJSON_CreateBool(lane->one_by_one));
    put_number(&tree, "steps", (double)lane->steps);
    put_number(&tree, "ms", lane->ms);
    return finish(tree);
}

static cJSON *lanes_json(const doc_lanes *lanes) {
    tree tree = begin();
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; list != NULL && i < lanes->count; i++) append(&list, lane_json(&lanes->lanes[i]));
    put_number(&tree, "words", (double)lanes->words);
    put_number(&tree, "slowed", lanes->slowed);
    put(&tree, "lanes", list);
    return finish(tree);
}

/* ---- the document -------------------------------------------------------------------------------------------------- */

static cJSON *block_json(const doc *doc, const doc_block *block) {
    tree tree = begin();
    put_text(&tree, "kind", doc_kind_name(block->kind));
    put_text(&tree, "id", block->id);
    put_number(&tree, "step", block->step);
    put_text(&tree, "title", block->title);
    put_text(&tree, "text", block->text);
    put_text(&tree, "answer", block->answer);
    put_text(&tree, "summary", block->title != NULL ? doc_describe(doc, block) : NULL);
    if (block->title != NULL) put(&tree, "summary_is_numbers", cJSON_CreateBool(block->summary == NULL));
    switch (block->kind) {
    case DOC_MATRIX:
        put(&tree, "matrix", matrix_json(block->matrix));
        break;
    case DOC_PLOT:
        put(&tree, "plot", plot_json(block->plot));
        break;
    case DOC_TABLE:
        put(&tree, "table", table_json(block->table));
        break;
    case DOC_SPACE:
        put(&tree, "space", space_json(block->space));
        break;
    case DOC_GRAPH:
        put(&tree, "graph", graph_json(block->graph));
        break;
    case DOC_LANES:
        put(&tree, "lanes", lanes_json(block->lanes));
        break;
    default:
        break;
    }
    return finish(tree);
}

cJSON *doc_json(const doc *doc) {
    tree tree = begin();
    cJSON *blocks = cJSON_CreateArray();
    for (const doc_block *block = doc->first; blocks != NULL && block != NULL; block = block->next)
        append(&blocks, block_json(doc, block));
    put_text(&tree, "name", doc->name);
    put_text(&tree, "title", doc->title);
    put_text(&tree, "language", doc->language == DOC_ZH ? "zh" : "en");
    put_number(&tree, "minutes", doc->minutes);
    put_text(&tree, "device", doc->device);
    put_number(&tree, "steps", doc->step);
    put(&tree, "blocks", blocks);
    return finish(tree);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

static cJSON *value_json(const figure *figure) {
    const size_t count = (size_t)(figure->size[0] * figure->size[1]);
    if (figure->rank == 0)
        return figure->texts != NULL ? cJSON_CreateString(figure->texts[0]) : cJSON_CreateNumber(figure->numbers[0]);
    if (figure->texts != NULL) return texts(figure->texts, count);
    return figure->rank == 1 ? numbers(figure->numbers, count) : number_rows(figure->numbers, figure->size[0], figure->size[1]);
}

/* The object of that name in an object, made where there is none. */
static cJSON *child(cJSON *object, const char *name, size_t length) {
    char key[64] = "";
    if (length >= sizeof key) return NULL;
    memcpy(key, name, length);
    cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return item != NULL ? item : cJSON_AddObjectToObject(object, key);
}

bool figures_json(cJSON *root, const figures *figures) {
    for (const figure *figure = figures->first; figure != NULL; figure = figure->next) {
        tree tree = {root, root != NULL};
        const char *name = figure->path, *slash;
        while (tree.object != NULL && (slash = strchr(name, '/')) != NULL) {
            tree.object = child(tree.object, name, (size_t)(slash - name));
            name = slash + 1;
        }
        tree.whole = tree.object != NULL;
        put(&tree, name, value_json(figure));
        if (!tree.whole) return false;
    }
    return true;
}

#endif
